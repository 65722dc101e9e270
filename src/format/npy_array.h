/* npy_array.h: arrays as .npy files of NumPy: C order, little-endian. */
#ifndef DR_FORMAT_NPY_ARRAY_H
#define DR_FORMAT_NPY_ARRAY_H

#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#include "base/error.h"
#include "base/text.h"

/* Adds the header for an array whose extents are known; its length is a multiple of 64.  bfloat16, which NumPy does not
 * have, is written as uint16. */
void dr__npy_put_header(dr__text *out, const dr_desc *desc);

/* Reads a file that holds such an array.  `want`: type, number of axes, and the extents that are known.  *out borrows
 * from `data`.  DR_ERR_FORMAT where the file holds anything else. */
dr_status dr__npy_read(const uint8_t *data, size_t size, const dr_desc *want, dr_view *out, dr_error *err);

#endif
