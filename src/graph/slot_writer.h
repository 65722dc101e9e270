/* slot_writer.h: writes a finished sample into its slot of a batch. */
#ifndef DR_GRAPH_SLOT_WRITER_H
#define DR_GRAPH_SLOT_WRITER_H

#include "graph/program.h"

/* A sink for 8-bit rows that writes them through a tail's table into the slot, in its layout and type. */
typedef struct dr__slot_writer {
    dr__row_sink rows; /* must be first: ops receive a pointer to it */
    const dr__kernels *k;
    const dr__tail *tail;
    bool mirror;
    dr_view out;
} dr__slot_writer;

void dr__slot_open(dr__slot_writer *sink, const dr__kernels *k, const dr__tail *tail, bool mirror, const dr_view *out);

/* Writes all rows of a uint8 HWC image. */
void dr__slot_write_image(dr__slot_writer *sink, const dr_view *image);

/* Copies an array of any kind; from HWC to CHW if `out` has that layout. */
void dr__slot_write_array(const dr__kernels *k, const dr_view *in, dr_view *out);

#endif
