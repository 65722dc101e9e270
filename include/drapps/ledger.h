/* ledger.h: what each sample of a data set costs, remembered in a file.
 *
 * A ledger answers one question for every executor: how many nanoseconds will this sample take?  A sample that was seen
 * costs what it cost before; one that was not is estimated from a hint, a number that is known beforehand (the size of
 * its file, the data set's own estimate).  Costs only decide what starts first: a wrong or missing one costs time,
 * never a sample, and never changes a batch in order.
 *
 * Costs are kept in units of the typical cost, so that a ledger made on a faster machine is still of use: only the
 * length of a unit is learnt anew.
 *
 * The file is replaced as a whole, by renaming a new one: after a crash it is the old one or the new one.  It is read,
 * not mapped, so that a file which somebody truncates meanwhile harms nobody.  A file that is missing, damaged or of
 * another number of samples counts as empty.  What two processes learn is merged.
 *
 * Threads: dr_ledger_add and dr_ledger_predict take no lock and make no system call; all others take a lock.
 */
#ifndef DRAPPS_LEDGER_H
#define DRAPPS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples that a ledger may have: with more, remembering each takes more than it gives. */
enum { DR_LEDGER_MAX_SAMPLES = 10000000 };

typedef struct dr_ledger dr_ledger;

typedef struct dr_ledger_facts {
    uint64_t n_seen;                       /* samples with a remembered cost */
    double unit_ns;                        /* nanoseconds of a unit; 0: nothing was seen */
    double median_ns, mean_ns, longest_ns; /* of what was seen, or is guessed; 0: nothing */
    bool differs;                          /* costs differ enough for a ledger to be of use */
} dr_ledger_facts;

/* Opens a ledger.
 *
 * @param path       its file, read if it exists; NULL: memory alone.  Copied
 * @param n_samples  of the data set, up to DR_LEDGER_MAX_SAMPLES; ids are below it
 * @param out        owned by the caller, freed by dr_ledger_close
 * @return DR_OK; DR_ERR_LIMIT: too many samples; DR_ERR_NOMEM */
DR_API dr_status dr_ledger_open(const char *path, uint64_t n_samples, dr_ledger **out, dr_error *err);

/* Frees a ledger without saving it and sets *ledger to NULL.  NULL is fine. */
DR_API void dr_ledger_close(dr_ledger **ledger);

/* Remembers what n samples cost.
 *
 * @param ids    ids from n_samples on are ignored
 * @param ns     nanoseconds of each, above 0; others are ignored
 * @param hints  of each, NAN where there is none; NULL: no hints */
DR_API void dr_ledger_note(dr_ledger *ledger, const uint64_t *ids, const double *ns, const double *hints, size_t n);

/* Remembers what one sample cost, some samples later: for threads that must not wait. */
DR_API void dr_ledger_add(dr_ledger *ledger, uint64_t id, uint64_t ns);

/* Says what samples will cost by what they cost before.
 *
 * @param ns  receives nanoseconds of each; 0: not known */
DR_API void dr_ledger_predict(const dr_ledger *ledger, const uint64_t *ids, size_t n, float *ns);

/* Says what samples that were never seen will cost, from their hints.
 *
 * @param ns  receives nanoseconds of each; 0: the hints tell nothing */
DR_API void dr_ledger_estimate(dr_ledger *ledger, const double *hints, size_t n, float *ns);

/* Hints of some samples from all over the data set, before anything was seen: where they differ enough, costs are
 * guessed in proportion to them until enough was seen.  Hints below 0, or not finite, are of no use. */
DR_API void dr_ledger_guess(dr_ledger *ledger, const double *hints, size_t n);

/* What dr_ledger_estimate goes by. */
typedef enum dr_ledger_basis {
    DR_LEDGER_NOTHING, /* hints tell nothing: no need to ask for them */
    DR_LEDGER_GUESS,   /* costs in proportion to hints, because too little was seen */
    DR_LEDGER_MODEL    /* a line by hints, which explains a third of the differences at least */
} dr_ledger_basis;

DR_API dr_ledger_basis dr_ledger_estimates_by(dr_ledger *ledger);

/* Looks at all samples: not for every sample. */
DR_API dr_ledger_facts dr_ledger_look(dr_ledger *ledger);

/* Copies the remembered costs in units, n_samples of them; 0: never seen. */
DR_API void dr_ledger_units(const dr_ledger *ledger, float *units);

/* Writes the file, with what other processes have learnt of samples that this one has not seen.  Nothing is written
 * where costs are too much alike to be of use.
 *
 * @return false: the file cannot be written, and later calls do nothing */
DR_API bool dr_ledger_save(dr_ledger *ledger);

#ifdef __cplusplus
}
#endif
#endif
