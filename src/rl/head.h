/* head.h: the distribution of actions that a row of outputs stands for.
 *
 * Categoricals (softmax over the options that the mask allows) and Gaussians squashed by tanh, all independent given the
 * outputs: so the logarithm of the joint probability is a sum.  Where there are continuous actions it is a density, over
 * the squashed actions.  Outputs of a Gaussian are its mean and the logarithm of its deviation, held between
 * DR__RL_LOG_STD_MIN and DR__RL_LOG_STD_MAX.
 * The entropy is that of the categoricals and of the Gaussians before they are squashed, for which alone there is a formula.
 *
 * A drawn action keeps its continuous part unsquashed, so that nothing is lost where tanh is flat; dr__rl_squash makes of it
 * what an environment gets.
 */
#ifndef DR_RL_HEAD_H
#define DR_RL_HEAD_H

#include "rl/rl_spec.h"

#define DR__RL_LOG_STD_MIN (-5.0f)
#define DR__RL_LOG_STD_MAX 2.0f

typedef struct dr__rl_odds {
    double logp, entropy;
} dr__rl_odds;

/* Draws an action; returns the logarithm of its probability. */
double dr__rl_head_draw(const dr__rl_heads *heads, const float *out, const uint8_t *mask, dr_rng *rng, float *action);

/* The likeliest option of each categorical (the first of several), and the means. */
void dr__rl_head_best(const dr__rl_heads *heads, const float *out, const uint8_t *mask, float *action);

dr__rl_odds dr__rl_head_odds(const dr__rl_heads *heads, const float *out, const uint8_t *mask, const float *action);

/* Sets d_out to by_logp times the gradient of the log-probability plus by_entropy times that of the entropy. */
void dr__rl_head_grad(const dr__rl_heads *heads, const float *out, const uint8_t *mask, const float *action,
                      double by_logp, double by_entropy, float *d_out);

/* How far the distribution of `out` is from that of `from` (the Kullback-Leibler divergence of `from` to it); adds to d_out
 * weight times its gradient by `out`. */
double dr__rl_head_pull(const dr__rl_heads *heads, const float *out, const uint8_t *mask, const float *from,
                        double weight, float *d_out);

/* `to` (may be `action`) with its continuous part squashed. */
void dr__rl_squash(const dr__rl_heads *heads, const float *action, float *to);

/* Back again; what is nearer to -1 or 1 than 1e-6 is taken for that. */
void dr__rl_unsquash(const dr__rl_heads *heads, const float *action, float *to);

/* log(1 - tanh(u)^2), also where the difference is 0 in floats. */
double dr__rl_log_slope(double u);

#endif
