/* prefetch_cover.h: how many batches are to be made ahead.
 *
 * As many as are in flight at the rate of the demand (Little's law), and some seconds of demand more for how they vary:
 * the cover, which grows where the consumer waits though workers and readers could keep up, and shrinks where it lies
 * unused.  Where the user has granted memory and waiting is what counts: as many as that memory holds.
 */
#ifndef DR_SCHED_PREFETCH_COVER_H
#define DR_SCHED_PREFETCH_COVER_H

#include "sched/costs.h"

typedef struct dr__cover {
    double cover;               /* seconds of demand that lie ready, beyond what is in flight */
    double too_small;           /* cover with which the consumer waited; 0: none known */
    int calm, memory, remember; /* decisions: unused, since it was too small, for which that counts */
    double waited;              /* share of time that the consumer waited, summed over the last decisions */
    int looks, quiet;           /* so many, since cover was last changed for that; in which it did not wait of late */
    double wait_before;         /* mean of these shares, before there was more cover, */
    double cover_before;        /* and the cover then */
    int grown, barred, pause;   /* decisions: in which cover was added, in which none is, and was not last time */
    uint64_t raised_ns;         /* when there were last more readers, or batches that wait for reads; 0: never */
} dr__cover;

/* Learns from an observation.  capacity: of the workers as they stand; wait: share of its time that the consumer may
 * wait. */
void dr__cover_adapt(dr__cover *s, const dr__costs *costs, const dr__observation *o, double capacity, double wait);

/* Batches for workers of that capacity.  split: readers read; spare: batches to spare there, as a share of those in
 * flight; granted: as dr__cover_granted says. */
double dr__cover_batches(const dr__cover *s, const dr__costs *costs, const dr__observation *o, double capacity,
                         bool split, double spare, double granted);

/* Batches that fill this share of the memory that the user has granted; 0: none was, or other things than waiting
 * count. */
double dr__cover_granted(const dr__observation *o, double share);

/* Batches that memory allows to be made ahead for a while: more of a limit that the user gave.  At least those of the
 * prefetch window. */
double dr__cover_room(const dr__observation *o);

#endif
