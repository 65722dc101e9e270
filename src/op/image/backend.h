/* backend.h: torchvision has two of everything that computes with pixels: Pillow's for PIL images, its own for tensors.
 *
 * They differ in how they round.  An op that has both has a setting `backend`.
 */
#ifndef DR_OP_IMAGE_BACKEND_H
#define DR_OP_IMAGE_BACKEND_H

#include "op/param.h"

enum { DR__BACKEND_PIL = 0, DR__BACKEND_TENSOR = 1 };

extern const char *const dr__backend_names[];

/* The row of an op's params; its conf has `int backend`. */
#define DR__BACKEND_PARAM(type)                                                                                        \
    DR_CHOICE(type, backend, "\"pil\"", dr__backend_names, "whose numbers: torchvision's on PIL images, or on tensors")

#endif
