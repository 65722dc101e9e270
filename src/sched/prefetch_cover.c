/* prefetch_cover.c: Little's law, and cover that is tried, judged and given back. */
#include "sched/prefetch_cover.h"

#include <math.h>

#include "base/compiler.h"
#include "sched/prefetch_rule.h"
#include "sched/reward.h"

static const double NEARLY_FULL = 0.75;                      /* of memory */
static const double HELPED = 0.6;                            /* of the waiting before: cover that leaves less did */
static const double GRANTED_PART = 0.7, PART = 0.35;         /* of the memory limit, for a while */
enum { CALM = 10, FIRST_MEMORY = 60, LONGEST_MEMORY = 960 }; /* decisions */
enum { TRIES = 2, LOOKS = 20 };                              /* at more cover, decisions then, before it is judged */

/* On a busy machine a consumer waits now and then by chance: one decision's waiting says little, the mean does. */
static double mean_wait(dr__cover *s, const dr__observation *o)
{
    if (o->sudden || s->looks >= 2 * LOOKS) {
        s->waited = o->sudden ? 0 : s->waited / 2;
        s->looks = o->sudden ? 0 : s->looks / 2;
    }
    s->waited += o->wait;
    return s->waited / ++s->looks;
}

static void look_anew(dr__cover *s)
{
    s->waited = 0;
    s->looks = 0;
}

/* Cover that was doubled twice, after which the consumer waits as before, is not what is missing: it is given back, and
 * for a time there is no more, longer each time.  Where it helped, it is doubled twice again, and judged again. */
static bool in_vain(dr__cover *s, const dr__observation *o, double wait)
{
    if (o->sudden)
        s->grown = s->barred = s->pause = 0;
    if (s->barred > 0) {
        s->barred--;
        return true;
    }
    if (s->grown == TRIES && s->looks < LOOKS)
        return true; /* too early to tell */
    bool failed = s->grown == TRIES && wait >= HELPED * s->wait_before;
    if (failed) {
        s->cover = s->cover_before;
        s->too_small = 0;
        s->barred = s->pause = s->pause ? DR_MIN(2 * s->pause, LONGEST_MEMORY) : FIRST_MEMORY;
    }
    if (s->grown == 0 || s->grown == TRIES) {
        s->wait_before = wait;
        s->cover_before = s->cover;
        s->grown = 0;
    }
    s->grown += !failed;
    look_anew(s);
    return failed;
}

/* Twice as much, but no more than all batches hold: that would only take long to give back.  At first a batch, or half
 * of those in flight; of those that wait for reads there is some to spare already. */
static double more_cover(const dr__cover *s, const dr__costs *c, const dr__observation *o)
{
    double batch = o->batch_samples / c->demand, most = o->use.most[DR_KNOB_PREFETCH] * batch;
    double first = o->knob[DR_KNOB_READERS] > 0 ? batch : DR_MAX(c->latency / 2, batch);
    return DR_MIN(DR_MAX(2 * s->cover, first), most);
}

/* Whether workers, and readers where there are some, could keep up.  That readers are nearly always at a read says
 * nothing: how many samples they can read does. */
static bool could_keep_up(const dr__costs *c, const dr__observation *o, double capacity)
{
    double readers = o->knob[DR_KNOB_READERS], demand = 1.05 * c->demand;
    if (readers <= 0)
        return capacity > demand && o->busy < 0.85;
    double workers_busy = o->flow[DR_FLOW_WORK] / DR_MAX(o->knob[DR_KNOB_WORKERS], 1);
    return capacity > demand && workers_busy < 0.85 && readers > demand * c->read;
}

/* Whether all that is seen was after the last rise, when what was begun by it had arrived. */
static bool has_settled(const dr__cover *s, const dr__costs *c, const dr__observation *o)
{
    double after = (double)(o->time_ns - s->raised_ns) * 1e-9 - o->span;
    return s->raised_ns == 0 || after >= c->latency;
}

/* More cover where the consumer waits though the others could keep up; less where it lies unused for long, but not so
 * little again that it waited. */
void dr__cover_adapt(dr__cover *s, const dr__costs *c, const dr__observation *o, double capacity, double least)
{
    double wait = mean_wait(s, o), more = more_cover(s, c, o);
    bool waits = o->wait > least, lacks = waits && wait > least && more > s->cover;
    s->quiet = waits ? 0 : s->quiet + 1;
    if (s->quiet >= FIRST_MEMORY)
        s->grown = 0; /* what was added was enough */
    if (lacks && could_keep_up(c, o, capacity) && has_settled(s, c, o) && !in_vain(s, o, wait)) {
        s->too_small = s->cover;
        s->remember = s->remember ? DR_MIN(2 * s->remember, LONGEST_MEMORY) : FIRST_MEMORY;
        s->memory = s->calm = 0;
        s->cover = more;
        return;
    }
    if (s->too_small > 0 && ++s->memory > s->remember)
        s->too_small = 0;
    s->calm = !waits && o->least_ready >= 2 ? s->calm + 1 : 0;
    if (s->calm >= CALM && 0.7 * s->cover > s->too_small) {
        s->cover *= 0.7;
        s->calm = 0;
    }
}

/* From the begin of a batch to its end.  Where the workers cannot keep up anyway, batches wait for these, and more of
 * them would wait longer: then at most twice what all workers need for one counts, and what readers need for a read.
 */
static double latency_of(const dr__costs *c, const dr__observation *o, double capacity, bool split)
{
    double alone = o->batch_samples / DR_MAX(capacity, 1e-9), read = split ? c->read : 0;
    return capacity > c->demand ? c->latency : DR_MIN(c->latency, 2 * alone + read);
}

/* Batches that wait for reads take long and are many: what is spare grows with them, and is soon given back. */
double dr__cover_batches(const dr__cover *s, const dr__costs *c, const dr__observation *o, double capacity, bool split,
                         double spare, double granted)
{
    double rate = DR_MIN(capacity, c->demand);
    double now = o->knob[DR_KNOB_PREFETCH], batches = rate / o->batch_samples;
    double in_flight = batches * latency_of(c, o, capacity, split);
    double need = in_flight + batches * s->cover + (split ? DR_MAX(spare * in_flight, 1) : 1);
    need = DR_MAX(need, granted);
    double too_many = (split ? 1.05 : 1.2) * need + 0.75;
    bool change = need > now + 0.25 || too_many < now; /* between them it rests */
    return change ? DR_MAX(ceil(need - 0.25), DR__PREFETCH_LEAST) : now;
}

/* Memory that is short already is not filled further. */
double dr__cover_granted(const dr__observation *o, double share)
{
    double each = o->flow[DR_FLOW_BATCH_BYTES], most = o->use.most[DR_KNOB_PREFETCH];
    if (!o->use.memory_granted || !(each > 0) || !(o->memory_limit > 0) || !dr__waiting_counts(&o->use.weights))
        return 0;
    if (o->level[DR_SENSOR_MEM_USED] > NEARLY_FULL)
        most = DR_MIN(most, o->knob[DR_KNOB_PREFETCH]);
    return DR_MIN(floor(share * o->memory_limit / each), most);
}

double dr__cover_room(const dr__observation *o)
{
    double each = o->flow[DR_FLOW_BATCH_BYTES], now = o->knob[DR_KNOB_PREFETCH];
    double part = o->use.memory_granted ? GRANTED_PART : PART;
    if (!(each > 0) || !(o->memory_limit > 0) || o->level[DR_SENSOR_MEM_USED] > NEARLY_FULL)
        return now;
    return DR_MAX(DR_MIN(floor(part * o->memory_limit / each), o->use.most[DR_KNOB_PREFETCH]), now);
}
