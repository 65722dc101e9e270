/* heads.h: programs for the ops that clients ask for, compiled once and kept while they are used.
 *
 * A head is the first part of a pipeline (dr__prefix_offload), for one data set, graph, list of outputs and prefix.
 * The least recently used one gives way.
 */
#ifndef DR_SERVE_HEADS_H
#define DR_SERVE_HEADS_H

#include "graph/prefix.h"

typedef struct dr__heads dr__heads;
typedef struct dr__head dr__head;

/* NULL: out of memory. */
dr__heads *dr__heads_new(void);
void dr__heads_free(dr__heads **heads); /* no head is in use */

/* What a head is known by; texts are borrowed for the call. */
typedef struct dr__head_key {
    const dr_dataset *set;
    uint64_t set_number; /* that no other set of the process has or had */
    const char *graph, *outputs;
    uint16_t prefix;
} dr__head_key;

/* Takes a head, or compiles it.  The caller gives it back.
 *
 * @return DR_OK; DR_ERR_UNSUPPORTED, DR_ERR_ARG, DR_ERR_NOT_FOUND and others: the ops cannot run here. */
dr_status dr__heads_take(dr__heads *heads, const dr__head_key *key, dr__head **out, dr_error *err);
void dr__heads_give_back(dr__heads *heads, dr__head **head);

const dr__program *dr__head_program(const dr__head *head);

#endif
