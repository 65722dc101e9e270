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

/* Most samples of a ledger; remembering more would cost more than it saves. */
enum { DR_LEDGER_MAX_SAMPLES = 10000000 };

typedef struct dr_ledger dr_ledger;

typedef struct dr_ledger_facts {
    uint64_t n_seen;                       /* samples with a remembered cost */
    double unit_ns;                        /* nanoseconds of a unit; 0: nothing was seen */
    double median_ns, mean_ns, longest_ns; /* of known or estimated costs; 0: none */
    bool differs;                          /* costs differ enough for a ledger to be of use */
} dr_ledger_facts;

/**
 * Open a ledger.
 *
 * @param path      The file, read if it exists; copied.  NULL: no file.
 * @param n_samples Samples of the data set, up to DR_LEDGER_MAX_SAMPLES; ids are below it.
 * @param out       The ledger, which the caller frees by dr_ledger_close.  NULL after a failure.
 * @param err       The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_LIMIT: too many samples; DR_ERR_NOMEM.
 */
DR_API dr_status dr_ledger_open(const char *path, uint64_t n_samples, dr_ledger **out, dr_error *err);

/**
 * Free a ledger without saving it.
 *
 * @param ledger The ledger; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_ledger_close(dr_ledger **ledger);

/**
 * Remember what n samples cost.
 *
 * @param ledger The ledger.
 * @param ids    The samples; ids from n_samples on are ignored.
 * @param ns     The time of each; values that are not above 0 are ignored.
 * @param hints  The hint of each, NAN where there is none; NULL: no hints.
 * @param n      Their number.
 */
DR_API void dr_ledger_note(dr_ledger *ledger, const uint64_t *ids, const double *ns, const double *hints, size_t n);

/**
 * Remember what one sample cost, some samples later: for threads that must not wait.
 *
 * @param ledger The ledger.
 * @param id     The sample.
 * @param ns     The time it took.
 */
DR_API void dr_ledger_add(dr_ledger *ledger, uint64_t id, uint64_t ns);

/**
 * Predict the costs of samples from their earlier costs.
 *
 * @param ledger The ledger.
 * @param ids    Ids of samples.
 * @param n      Their number.
 * @param ns     Receives nanoseconds of each; 0: not known.
 */
DR_API void dr_ledger_predict(const dr_ledger *ledger, const uint64_t *ids, size_t n, float *ns);

/**
 * Estimate the costs of samples that were never seen from their hints.
 *
 * @param ledger The ledger.
 * @param hints  The hint of each sample.
 * @param n      Their number.
 * @param ns     Receives nanoseconds of each; 0: hints are of no use.
 */
DR_API void dr_ledger_estimate(dr_ledger *ledger, const double *hints, size_t n, float *ns);

/**
 * Give hints of some samples from all over the data set, before any cost is known.  If they differ enough, costs are
 * estimated in proportion to hints until enough costs are known.
 *
 * @param ledger The ledger.
 * @param hints  The hints; those that are negative or not finite are ignored.
 * @param n      Their number.
 */
DR_API void dr_ledger_guess(dr_ledger *ledger, const double *hints, size_t n);

/* The basis of dr_ledger_estimate. */
typedef enum dr_ledger_basis {
    DR_LEDGER_NOTHING, /* none: hints are of no use and need not be given */
    DR_LEDGER_GUESS,   /* costs in proportion to hints, since too few costs are known */
    DR_LEDGER_MODEL    /* a linear model of hints that explains at least 1/3 of the variance */
} dr_ledger_basis;

/**
 * Get the basis of estimates.
 *
 * @param ledger The ledger.
 *
 * @return The basis that dr_ledger_estimate uses now.
 */
DR_API dr_ledger_basis dr_ledger_estimates_by(dr_ledger *ledger);

/**
 * Summarise a ledger.  The time grows with the number of samples.
 *
 * @param ledger The ledger.
 *
 * @return The summary.
 */
DR_API dr_ledger_facts dr_ledger_look(dr_ledger *ledger);

/**
 * Copy the remembered costs.
 *
 * @param ledger The ledger.
 * @param units  Receives n_samples costs in units; 0: never seen.
 */
DR_API void dr_ledger_units(const dr_ledger *ledger, float *units);

/**
 * Write the file.  Costs that other processes have written for samples that this one has not seen are kept.  Nothing is
 * written if all costs are too similar for a ledger to be of use.
 *
 * @param ledger The ledger.
 *
 * @return false: the file cannot be written; later calls then do nothing.
 */
DR_API bool dr_ledger_save(dr_ledger *ledger);

#ifdef __cplusplus
}
#endif
#endif
