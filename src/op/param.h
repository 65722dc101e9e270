/* param.h: the settings and draws of ops, described in tables.
 *
 * One row per member of a struct: its type, place, default (JSON text; NULL: must be given), range and one line of
 * documentation.  Graph JSON, Python signatures, `drapps ops`, range checks and the generic tests read these rows.
 */
#ifndef DR_OP_PARAM_H
#define DR_OP_PARAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct json_t;

typedef enum dr_param_type {
    DR_P_REAL = 1, /* double */
    DR_P_INT,      /* int64_t */
    DR_P_BOOL,     /* bool */
    DR_P_ENUM,     /* int: position in choices, a NULL-ended array of strings */
    DR_P_REALS,    /* dr_reals: a list; a bare number is a list of one; null is an empty list */
    DR_P_INTS,     /* dr_ints: likewise */
    DR_P_OPS,      /* dr_op_list: nested ops */
    DR_P_TEXT,     /* char[DR_PARAM_TEXT] */
} dr_param_type;

enum { DR_PARAM_LIST = 16, DR_PARAM_TEXT = 64 };

typedef struct dr_reals {
    int n;
    double v[DR_PARAM_LIST];
} dr_reals;

typedef struct dr_ints {
    int n;
    int64_t v[DR_PARAM_LIST];
} dr_ints;

typedef struct dr_op_list {
    int n;
    struct dr__op *ops; /* owned by the conf that holds the list */
} dr_op_list;

typedef struct dr_param {
    const char *name;
    dr_param_type type;
    size_t offset;
    const char *fallback; /* the default as JSON text; NULL: required */
    double min, max;      /* numbers, or each entry of a list */
    int n_min, n_max;     /* entries of a list */
    const char *const *choices;
    const char *doc;
} dr_param;

#define DR_REAL(type, member, fallback, lo, hi, doc)                                                                   \
    {                                                                                                                  \
#member, DR_P_REAL, offsetof(type, member), fallback, lo, hi, 0, 0, NULL, doc                                  \
    }
#define DR_INT(type, member, fallback, lo, hi, doc)                                                                    \
    {                                                                                                                  \
#member, DR_P_INT, offsetof(type, member), fallback, lo, hi, 0, 0, NULL, doc                                   \
    }
#define DR_BOOLEAN(type, member, fallback, doc)                                                                        \
    {                                                                                                                  \
#member, DR_P_BOOL, offsetof(type, member), fallback, 0, 1, 0, 0, NULL, doc                                    \
    }
#define DR_CHOICE(type, member, fallback, choices, doc)                                                                \
    {                                                                                                                  \
#member, DR_P_ENUM, offsetof(type, member), fallback, 0, 0, 0, 0, choices, doc                                 \
    }
#define DR_REAL_LIST(type, member, fallback, lo, hi, n_lo, n_hi, doc)                                                  \
    {                                                                                                                  \
#member, DR_P_REALS, offsetof(type, member), fallback, lo, hi, n_lo, n_hi, NULL, doc                           \
    }
#define DR_INT_LIST(type, member, fallback, lo, hi, n_lo, n_hi, doc)                                                   \
    {                                                                                                                  \
#member, DR_P_INTS, offsetof(type, member), fallback, lo, hi, n_lo, n_hi, NULL, doc                            \
    }
#define DR_OP_LIST(type, member, doc)                                                                                  \
    {                                                                                                                  \
#member, DR_P_OPS, offsetof(type, member), NULL, 0, 0, 1, 64, NULL, doc                                        \
    }

/* Sets the struct at `out` (zeroed by the caller) from a JSON object (NULL: all defaults).  `op_name` names the op in
 * messages. */
dr_status dr__params_read(const dr_param *params, const struct json_t *object, const char *op_name, void *out,
                          dr_error *err);

/* A new JSON object (owned by the caller) with the members of `in` that differ from their defaults, or all. NULL: out
 * of memory. */
struct json_t *dr__params_write(const dr_param *params, const void *in, int all);

/* Frees nested ops. */
void dr__params_free(const dr_param *params, void *conf);

#endif
