/* stage_int8.c: floats as 8-bit multiples of a scale, which each block has its own of.
 *
 * scale = largest magnitude / 127.  The multiples of all elements come first, then the scale, as a float64.  NaN and
 * infinity are refused: there is no multiple for them.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "codec/array/array_stage.h"

enum { MOST = 127, SCALE_BYTES = 8 };

static bool takes(dr__elem in)
{
    return in.kind == DR__ELEM_FLOAT && in.size >= 4;
}

static dr__elem makes(dr__elem in)
{
    (void)in;
    return DR__ELEM_BYTES;
}

static size_t bound(size_t n, dr__elem in)
{
    (void)in;
    return n + SCALE_BYTES;
}

static double element(const uint8_t *data, size_t i, dr__elem in)
{
    float f;
    double d;
    if (in.size == 8) {
        memcpy(&d, data + i * 8, 8);
        return d;
    }
    memcpy(&f, data + i * 4, 4);
    return f;
}

/* The scale for a largest magnitude, rounded down, so that 127 * scale is not beyond it; 0: all multiples are 0. */
static double scale_of(double most)
{
    return most / MOST < DBL_MIN ? 0 : nextafter(most / MOST, 0);
}

static size_t encode(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = fabs(element(data, i, in));
        if (!isfinite(x)) {
            note->bad = i;
            return 0;
        }
        most = x > most ? x : most;
    }
    const double scale = scale_of(most);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(int8_t)(scale > 0 ? nearbyint(element(data, i, in) / scale) : 0);
    memcpy(out + n, &scale, sizeof scale);
    /* Half a step, and what rounding to the type of the elements adds. */
    note->abs_error = scale > 0 ? ldexp(scale * (1 + ldexp(1, -14)), -1) + ldexp(1, -149) : most;
    note->rel_error = 0;
    return n + SCALE_BYTES;
}

static bool decode(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    double scale;
    if (size != n + SCALE_BYTES)
        return false;
    memcpy(&scale, data + n, sizeof scale);
    for (size_t i = 0; i < n; i++) {
        const double x = (int8_t)data[i] * scale;
        const float f = (float)x;
        if (in.size == 8)
            memcpy(out + i * 8, &x, 8);
        else
            memcpy(out + i * 4, &f, 4);
    }
    return true;
}

const dr__array_stage dr__stage_int8 = {
    .name = "int8",
    .summary = "float32 and float64 as 8-bit multiples of a scale for each block",
    .error = "absolute: 1/254 of the largest magnitude of a block; NaN and infinity are refused",
    .reason = "int8 cannot hold",
    .wire_id = DR__STAGE_INT8,
    .kind = DR__STAGE_LOSSY,
    .fixed = true,
    .ratio = 8,
    .takes = takes,
    .makes = makes,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
