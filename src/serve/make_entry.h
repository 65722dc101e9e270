/* make_entry.h: makes the frame of one sample, on one thread. */
#ifndef DR_SERVE_MAKE_ENTRY_H
#define DR_SERVE_MAKE_ENTRY_H

#include "format/remote_request.h"
#include "graph/workbench.h"
#include "serve/catalogue.h"
#include "serve/heads.h"

/* What a thread needs. */
typedef struct dr__maker {
    dr__workbench *bench;
    dr__where *where;
    dr__text bytes; /* of ranges */
    uint64_t most_pixels;
    double most_cost; /* predicted, in units of ops; 0: any */
    double cost;      /* of the sample made last */
} dr__maker;

bool dr__maker_open(dr__maker *maker, uint64_t memory, uint64_t most_pixels);
void dr__maker_close(dr__maker *maker);

/* Runs the ops of an entry and adds its frame.  Any failure adds nothing: the sample is then sent as it is stored, and
 * the client finds out by itself what is wrong with it. */
dr_status dr__make_ops(dr__maker *maker, dr__heads *heads, const dr__served_set *set, const dr__remote_request *request,
                       size_t entry, dr__text *out, dr_error *err);

/* Adds a frame with the sample as it is stored, with ranges of it, or with the reason why it cannot be read.
 *
 * @return DR_OK, also where the frame has an error: *failed says so; DR_ERR_NOMEM: nothing was added. */
dr_status dr__make_stored(dr__maker *maker, const dr__served_set *set, const dr__remote_request *request, size_t entry,
                          dr__text *out, bool *failed, dr_error *err);

#endif
