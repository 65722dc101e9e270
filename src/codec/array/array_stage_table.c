/* array_stage_table.c: the array stages, which need no library. */
#include "codec/array/array_stage.h"

extern const dr__array_stage dr__stage_shuffle, dr__stage_bitshuffle, dr__stage_delta;
extern const dr__array_stage dr__stage_u16, dr__stage_u24, dr__stage_bitpack, dr__stage_svb;
extern const dr__array_stage dr__stage_bf16, dr__stage_fp16, dr__stage_int8;

const dr__array_stage *const dr__array_stages[] = {
    &dr__stage_shuffle, &dr__stage_bitshuffle, &dr__stage_delta, &dr__stage_u16,  &dr__stage_u24, &dr__stage_bitpack,
    &dr__stage_svb,     &dr__stage_bf16,       &dr__stage_fp16,  &dr__stage_int8, NULL,
};

const dr__array_stage *dr__array_stage_find(unsigned wire_id)
{
    for (const dr__array_stage *const *s = dr__array_stages; *s; s++)
        if ((*s)->wire_id == wire_id)
            return *s;
    return NULL;
}
