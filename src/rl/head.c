/* head.c: categoricals one after the other, then the Gaussians. */
#include "rl/head.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/fmath.h"
#include "rl/rl_math.h"

static const double HALF_LOG_2PI = 0.91893853320467274178;

/* Probabilities of the allowed options, 0 of the others; *log_sum is the logarithm of what the exponentials sum up to.
 * Returns how many are allowed. */
static int probabilities(const float *logits, const uint8_t *mask, int n, float *p, double *log_sum)
{
    float most = -INFINITY, sum = 0;
    int allowed = 0;
    for (int i = 0; i < n; i++) {
        allowed += mask[i] != 0;
        most = mask[i] && logits[i] > most ? logits[i] : most;
    }
    for (int i = 0; i < n; i++) {
        p[i] = mask[i] ? dr__rl_exp(logits[i] - most) : 0;
        sum += p[i];
    }
    for (int i = 0; allowed && i < n; i++)
        p[i] /= sum;
    *log_sum = allowed ? most + dr__log(sum) : 0;
    return allowed;
}

static float held_log_std(float x)
{
    return DR_MIN(DR_MAX(x, DR__RL_LOG_STD_MIN), DR__RL_LOG_STD_MAX);
}

double dr__rl_log_slope(double u)
{
    const double a = fabs(u);
    return 2 * (0.69314718055994530942 - a - dr__log(1 + dr__exp(-2 * a)));
}

static double gaussian_logp(float mean, float log_std, float u)
{
    const double z = ((double)u - mean) / dr__exp(log_std);
    return -0.5 * z * z - log_std - HALF_LOG_2PI - dr__rl_log_slope(u);
}

static int drawn(const float *p, int n, double at)
{
    int last = 0;
    for (int i = 0; i < n; i++) {
        last = p[i] > 0 ? i : last;
        at -= p[i];
        if (at < 0)
            return last;
    }
    return last;
}

double dr__rl_head_draw(const dr__rl_heads *h, const float *out, const uint8_t *mask, dr_rng *rng, float *action)
{
    double logp = 0, log_sum;
    float p[DR__RL_OPTIONS];
    for (int k = 0; k < h->n_categoricals; k++) {
        const float *logits = out + h->cat[k].out;
        action[k] = 0;
        if (!probabilities(logits, mask + h->cat[k].mask, h->cat[k].n, p, &log_sum))
            continue;
        const int chosen = drawn(p, h->cat[k].n, dr__rng_unit(rng));
        action[k] = (float)chosen;
        logp += logits[chosen] - log_sum;
    }
    for (int i = 0; i < h->n_continuous; i++) {
        const float mean = out[h->mean_at + i], log_std = held_log_std(out[h->std_at + i]);
        const float u = mean + (float)(dr__exp(log_std) * dr__rng_normal(rng));
        action[h->action_at + i] = u;
        logp += gaussian_logp(mean, log_std, u);
    }
    return logp;
}

void dr__rl_head_best(const dr__rl_heads *h, const float *out, const uint8_t *mask, float *action)
{
    for (int k = 0; k < h->n_categoricals; k++) {
        const float *logits = out + h->cat[k].out;
        const uint8_t *allowed = mask + h->cat[k].mask;
        int best = -1;
        for (int i = 0; i < h->cat[k].n; i++)
            if (allowed[i] && (best < 0 || logits[i] > logits[best]))
                best = i;
        action[k] = (float)DR_MAX(best, 0);
    }
    for (int i = 0; i < h->n_continuous; i++)
        action[h->action_at + i] = out[h->mean_at + i];
}

dr__rl_odds dr__rl_head_odds(const dr__rl_heads *h, const float *out, const uint8_t *mask, const float *action)
{
    dr__rl_odds odds = { 0 };
    double log_sum;
    float p[DR__RL_OPTIONS];
    for (int k = 0; k < h->n_categoricals; k++) {
        const float *logits = out + h->cat[k].out;
        if (!probabilities(logits, mask + h->cat[k].mask, h->cat[k].n, p, &log_sum))
            continue;
        odds.logp += logits[(int)action[k]] - log_sum;
        for (int i = 0; i < h->cat[k].n; i++)
            if (p[i] > 0)
                odds.entropy -= p[i] * (logits[i] - log_sum);
    }
    for (int i = 0; i < h->n_continuous; i++) {
        const float log_std = held_log_std(out[h->std_at + i]);
        odds.logp += gaussian_logp(out[h->mean_at + i], log_std, action[h->action_at + i]);
        odds.entropy += 0.5 + HALF_LOG_2PI + log_std;
    }
    return odds;
}

/* d logp / d logit = [chosen] - p; d entropy / d logit = -p (log p + entropy). */
static void categorical_grad(const float *logits, const uint8_t *mask, int n, int chosen, double by_logp,
                             double by_entropy, float *d)
{
    float p[DR__RL_OPTIONS];
    double log_sum, entropy = 0;
    memset(d, 0, (size_t)n * sizeof *d);
    if (!probabilities(logits, mask, n, p, &log_sum))
        return;
    for (int i = 0; i < n; i++)
        if (p[i] > 0)
            entropy -= p[i] * (logits[i] - log_sum);
    for (int i = 0; i < n; i++)
        if (p[i] > 0)
            d[i] = (float)(by_logp * ((i == chosen) - (double)p[i]) -
                           by_entropy * p[i] * (logits[i] - log_sum + entropy));
}

void dr__rl_head_grad(const dr__rl_heads *h, const float *out, const uint8_t *mask, const float *action, double by_logp,
                      double by_entropy, float *d_out)
{
    for (int k = 0; k < h->n_categoricals; k++)
        categorical_grad(out + h->cat[k].out, mask + h->cat[k].mask, h->cat[k].n, (int)action[k], by_logp, by_entropy,
                         d_out + h->cat[k].out);
    for (int i = 0; i < h->n_continuous; i++) {
        const float raw = out[h->std_at + i], log_std = held_log_std(raw);
        const double inv = dr__exp(-log_std), z = ((double)action[h->action_at + i] - out[h->mean_at + i]) * inv;
        d_out[h->mean_at + i] = (float)(by_logp * z * inv);
        d_out[h->std_at + i] = raw == log_std ? (float)(by_logp * (z * z - 1) + by_entropy) : 0;
    }
}

/* sum p0 log(p0 / p1), by the logits of p1: p1 - p0. */
static double categorical_pull(const float *logits, const float *from, const uint8_t *mask, int n, double weight,
                               float *d)
{
    float p[DR__RL_OPTIONS], p0[DR__RL_OPTIONS];
    double log_sum, log_sum0, apart = 0;
    if (!probabilities(logits, mask, n, p, &log_sum))
        return 0;
    probabilities(from, mask, n, p0, &log_sum0);
    for (int i = 0; i < n; i++) {
        if (p0[i] > 0)
            apart += p0[i] * ((from[i] - log_sum0) - (logits[i] - log_sum));
        d[i] += (float)(weight * ((double)p[i] - p0[i]));
    }
    return apart;
}

double dr__rl_head_pull(const dr__rl_heads *h, const float *out, const uint8_t *mask, const float *from, double weight,
                        float *d_out)
{
    double apart = 0;
    for (int k = 0; k < h->n_categoricals; k++)
        apart += categorical_pull(out + h->cat[k].out, from + h->cat[k].out, mask + h->cat[k].mask, h->cat[k].n, weight,
                                  d_out + h->cat[k].out);
    for (int i = 0; i < h->n_continuous; i++) {
        const float raw = out[h->std_at + i], ls = held_log_std(raw), ls0 = held_log_std(from[h->std_at + i]);
        const double inv = dr__exp(-2 * ls), off = (double)out[h->mean_at + i] - from[h->mean_at + i];
        const double ratio = (dr__exp(2 * ls0) + off * off) * inv;
        apart += ls - ls0 + 0.5 * ratio - 0.5;
        d_out[h->mean_at + i] += (float)(weight * off * inv);
        d_out[h->std_at + i] += raw == ls ? (float)(weight * (1 - ratio)) : 0;
    }
    return apart;
}

void dr__rl_squash(const dr__rl_heads *h, const float *action, float *to)
{
    if (to != action)
        memcpy(to, action, (size_t)h->action_at * sizeof *to);
    for (int i = h->action_at; i < h->n_action; i++)
        to[i] = dr__rl_tanh(action[i]);
}

void dr__rl_unsquash(const dr__rl_heads *h, const float *action, float *to)
{
    if (to != action)
        memcpy(to, action, (size_t)h->action_at * sizeof *to);
    for (int i = h->action_at; i < h->n_action; i++) {
        const double a = DR_MIN(DR_MAX((double)action[i], -1 + 1e-6), 1 - 1e-6);
        to[i] = (float)(0.5 * (dr__log(1 + a) - dr__log(1 - a)));
    }
}
