/* store.h: writing a finished sample into its place: the last touch of its bytes. */
#ifndef DR_GRAPH_STORE_H
#define DR_GRAPH_STORE_H

#include "graph/program.h"

/* Takes 8-bit rows and writes them through a tail's table into the place, in its layout and type. */
typedef struct dr__store_sink {
    dr__row_sink rows; /* first: the sink that ops see */
    const dr__kernels *k;
    const dr__tail *tail;
    bool mirror;
    dr_view out;
} dr__store_sink;

void dr__store_open(dr__store_sink *sink, const dr__kernels *k, const dr__tail *tail, bool mirror, const dr_view *out);

/* All rows of a uint8 HWC image. */
void dr__store_image(dr__store_sink *sink, const dr_view *image);

/* Copies any array; HWC to CHW where `out` is so. */
void dr__store_copy(const dr__kernels *k, const dr_view *in, dr_view *out);

#endif
