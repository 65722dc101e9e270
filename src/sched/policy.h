/* policy.h: a policy proposes values for knobs from an observation and its own small state.
 *
 * A policy is a file policy_<name>.c that ends in a dr__policy_def, and a row in policy_defs.h.  It only proposes: the
 * guard decides what is carried out.  A policy knows no clock but the observation's, allocates nothing, and calls
 * nobody, so that a test or a simulator can run it as a controller does.
 */
#ifndef DR_SCHED_POLICY_H
#define DR_SCHED_POLICY_H

#include "sched/observation.h"

enum { DR__MAX_PARAMS = 16 };

typedef struct dr__proposal {
    double knob[DR_N_KNOBS];    /* on entry the values they have */
    int bound;                  /* dr_bound; on entry UNKNOWN */
    uint32_t back;              /* bits of knobs that the guard takes back to earlier values */
    char reason[DR_MAX_REASON]; /* sentences, without the changes */
} dr__proposal;

/* A number that the user may set: "analytic:margin=1.3". */
typedef struct dr__policy_param {
    const char *name;
    double least, most, standard; /* range and default */
    const char *doc;
} dr__policy_param;

typedef struct dr__policy_def {
    const char *name, *doc;
    const dr__policy_param *params;
    size_t n_params; /* at most DR__MAX_PARAMS */

    size_t state_bytes;     /* zeroed before the first call; no pointers */
    uint32_t state_version; /* raised when layout or meaning of the state changes: a saved state of another version is
                               refused */

    /* param: n_params values, each in its range. */
    void (*decide)(void *state, const double *param, const dr__observation *o, dr__proposal *proposal);

    /* Adds to every time in a state that was saved by another process; NULL: there are no times in it. */
    void (*shift_time)(void *state, int64_t by_ns);

    /* Whether a loaded state is sound; NULL: every one is. */
    bool (*check)(const void *state);
} dr__policy_def;

#define DR_POLICY(name) extern const dr__policy_def dr__policy_##name;
#include "sched/policy_defs.h"
#undef DR_POLICY

/* A policy with its parameters, as the user chose them. */
typedef struct dr__policy_choice {
    const dr__policy_def *def;
    double param[DR__MAX_PARAMS];
    char load[DR_MAX_POLICY]; /* file with a saved state; "": none */
} dr__policy_choice;

/* NULL: no such policy.  "off" is "fixed". */
const dr__policy_def *dr__policy_find(const char *name);

/* Fills a choice from "name:param=value,..." (dr_policy_check says what is allowed).  NULL: "analytic".  The variable
 * DRAPPS_POLICY overrides the text. */
dr_status dr__policy_choose(const char *text, dr__policy_choice *out, dr_error *err);

/* The text that counts: DRAPPS_POLICY, `text`, or the default.  Borrowed. */
const char *dr__policy_text(const char *text);

/* --- saved states (policy_state.c) ---
 *
 *   "DRPOLICY"  u32 format version  u32 state version  char name[16]  u64 time in ns  u64 state bytes
 *   the state
 *   u64 xxh3 of everything before
 *
 * The state has the layout of this machine; numbers around it are little-endian. */

size_t dr__policy_saved_bytes(const dr__policy_def *def);

/* Writes dr__policy_saved_bytes(def) bytes.  now_ns: time of the last observation. */
void dr__policy_save(const dr__policy_def *def, const void *state, uint64_t now_ns, uint8_t *out);

/* Replaces *state, unless the bytes are damaged, or of another policy or version: DR_ERR_FORMAT, and *state is
 * unchanged.  now_ns: the time that the saved one corresponds to here. */
dr_status dr__policy_load(const dr__policy_def *def, void *state, uint64_t now_ns, const uint8_t *data, size_t size,
                          dr_error *err);

/* The same from and to a file.  Saving writes a temporary file and renames it. */
dr_status dr__policy_load_file(const dr__policy_def *def, void *state, uint64_t now_ns, const char *path,
                               dr_error *err);
dr_status dr__policy_save_file(const dr__policy_def *def, const void *state, uint64_t now_ns, const char *path,
                               dr_error *err);

/* For shift_time: 0 stays 0, which means "never". */
static inline uint64_t dr__shift_ns(uint64_t time_ns, int64_t by_ns)
{
    return time_ns ? time_ns + (uint64_t)by_ns : 0;
}

#endif
