/* normals.h: many normal numbers fast, with the same bits on every machine.
 *
 * The ziggurat of Marsaglia and Tsang (2000) in Doornik's form (2005: place in the layer and layer come from different
 * bits): 99 in 100 numbers cost one random word, one comparison and one product.  Its tables and its rare cases use
 * fmath.h, so no libm takes part.  A number has 24 random bits and its sign.
 */
#ifndef DR_BASE_NORMALS_H
#define DR_BASE_NORMALS_H

#include <stdbool.h>

#include "base/rng.h"

enum { DR__NORMAL_LAYERS = 128 };

typedef struct dr__normals {
    double x[DR__NORMAL_LAYERS + 1]; /* right edges of the layers, the lowest first */
    double ratio[DR__NORMAL_LAYERS]; /* x[i + 1] / x[i]: places below it are under the curve */
} dr__normals;

void dr__normals_init(dr__normals *tables);

/* Mean 0, deviation 1. */
double dr__normals_next(const dr__normals *tables, dr_rng *rng);

#endif
