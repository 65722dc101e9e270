/* meter.c: the CPU time of the workers under a ceiling (base/ceiling.h).
 *
 * A worker comes for one claim after the other, and each time what its process has used since the last time is booked,
 * by the process's own clock: all its threads, the claim, the batches that it finished, and what was between.  Who
 * wants to begin a claim of work while the bucket is empty waits.  Nobody waits to finish a batch, which lets go of
 * memory, or to leave.
 *
 * A reservation is written down after the bucket has changed, and crossed out before: a worker that dies between costs
 * the others the time of one claim, once.  One that dies with it does not: dr_shmpool_reap puts it back.
 */
#include "shmpool/shared.h"

#include <math.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"

/* --- with the lock held --- */

void dr__meter_read(dr_shmpool *c, int worker, uint64_t cpu_ns)
{
    struct dr__worker *w = &c->workers[worker];
    const uint64_t used = w->cpu_ns && cpu_ns > w->cpu_ns ? cpu_ns - w->cpu_ns : 0;
    const double taken = w->reserved_ns;
    const bool was_work = w->metered;
    w->cpu_ns = cpu_ns;
    w->reserved_ns = 0;
    w->metered = w->held = 0;
    dr__step();
    if (cpu_ns)
        (was_work ? dr__ceiling_settle : dr__ceiling_book)(&c->board->ceiling, taken, used);
}

/* When a worker looks again: those that are held back come one after the other, a claim each, so that the one which
 * may go on does not wake all the others in vain. */
static uint64_t turn_of(const dr_shmpool *c, int worker, uint64_t opens)
{
    const dr__ceiling *ceiling = &c->board->ceiling;
    double before = 0;
    for (int i = 0; i < worker; i++)
        before += c->workers[i].held;
    return opens + (uint64_t)DR_MIN(before * ceiling->mean_ns / ceiling->cpus, 1e15);
}

bool dr__meter_begin(dr_shmpool *c, int worker, uint64_t now_ns, uint64_t *until_ns)
{
    struct dr__worker *w = &c->workers[worker];
    dr__ceiling *ceiling = &c->board->ceiling;
    if (ceiling->cpus <= 0)
        return true;
    const uint64_t opens = dr__ceiling_opens(ceiling, now_ns);
    if (opens > now_ns) {
        w->held = 1;
        *until_ns = turn_of(c, worker, opens);
        return false;
    }
    const double taken = dr__ceiling_take(ceiling);
    dr__step();
    w->reserved_ns = taken;
    w->metered = 1;
    return true;
}

void dr__meter_forget(dr_shmpool *c, int worker)
{
    struct dr__worker *w = &c->workers[worker];
    const double taken = w->reserved_ns;
    w->reserved_ns = 0;
    w->metered = w->held = 0;
    w->cpu_ns = 0;
    dr__step();
    dr__ceiling_book(&c->board->ceiling, taken, 0);
}

/* --- the ceiling --- */

dr_status dr_shmpool_set_ceiling(dr_shmpool *c, double cpus, dr_error *err)
{
    struct dr__wakes wakes = { 0 };
    if (!(cpus >= 0) || isinf(cpus))
        return dr__fail(err, DR_ERR_ARG, "shmpool: ceiling must be 0 (none) or a number of CPUs, got %g", cpus);
    dr__shmpool_lock(c);
    dr__ceiling_set(&c->board->ceiling, cpus, dr__now_ns());
    dr__wake_some(c, &wakes, UINT32_MAX); /* workers that wait for CPU time may continue now, or must wait longer */
    dr__shmpool_unlock_wake(c, &wakes);
    return DR_OK;
}

double dr__shmpool_ceiling(dr_shmpool *c)
{
    dr__shmpool_lock(c);
    const double cpus = c->board->ceiling.cpus;
    dr__shmpool_unlock(c);
    return cpus;
}
