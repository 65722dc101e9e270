/* slot_writer.h: writes a finished sample into its slot of a batch. */
#ifndef DR_GRAPH_SLOT_WRITER_H
#define DR_GRAPH_SLOT_WRITER_H

#include "graph/program.h"

/* Takes 8-bit rows and writes them through a tail's table into the slot, in its layout and type. */
typedef struct dr__slot_writer {
    dr__row_sink rows; /* first: the sink that ops see */
    const dr__kernels *k;
    const dr__tail *tail;
    bool mirror;
    dr_view out;
} dr__slot_writer;

void dr__slot_open(dr__slot_writer *sink, const dr__kernels *k, const dr__tail *tail, bool mirror, const dr_view *out);

/* All rows of a uint8 HWC image. */
void dr__slot_write_image(dr__slot_writer *sink, const dr_view *image);

/* Copies any array, from HWC to CHW where `out` has that layout. */
void dr__slot_copy(const dr__kernels *k, const dr_view *in, dr_view *out);

#endif
