/* codec_trial.c: see codec_trial.h. */
#include "unit/codec/chain/codec_trial.h"

#include <math.h>

#include "unit/cm.h"

#include "codec/chain/codec_chain.h"

/* A random chain: up to three array stages, then perhaps a byte stage; tried until one takes the type. */
static void draw_spec(trial *t)
{
    dr__chain chain;
    dr__chain_plan plan;
    do {
        chain = (dr__chain){ 0 };
        dr_error err;
        unsigned n_array = 0, n_bytes = 0;
        while (dr__array_stages[n_array])
            n_array++;
        while (dr__byte_codecs[n_bytes])
            n_bytes++;
        const unsigned n = (unsigned)dr__rng_below(&t->rng, 4);
        for (unsigned i = 0; i < n; i++)
            assert_ok(dr__chain_add(&chain, dr__array_stages[dr__rng_below(&t->rng, n_array)]->wire_id, 0, &err));
        if (!n || dr__rng_below(&t->rng, 3)) {
            const dr_byte_codec *c = dr__byte_codecs[dr__rng_below(&t->rng, n_bytes)];
            const int most = c->max_level > 9 ? 9 : c->max_level, range = most - c->min_level + 1;
            const int level = c->min_level + (int)dr__rng_below(&t->rng, (uint64_t)range);
            assert_ok(dr__chain_add(&chain, c->wire_id, level, &err));
        }
    } while (dr__chain_plan_for(&chain, t->desc.dtype, &plan, NULL) != DR_OK);
    dr__chain_text(&chain, t->spec);
}

/* One element as a 64-bit number in a manner that all elements of the array share. */
static uint64_t integer(trial *t, unsigned manner, size_t i, uint64_t last)
{
    switch (manner) {
    case 0:
        return 0;
    case 1:
        return ((uint64_t)dr__rng_u32(&t->rng) << 32) | dr__rng_u32(&t->rng);
    case 2:
        return i * 3;
    case 3:
        return dr__rng_below(&t->rng, 50257);
    case 4:
        return last + dr__rng_below(&t->rng, 9) - 4;
    case 5:
        return dr__rng_below(&t->rng, 20) ? dr__rng_below(&t->rng, 100) : (uint64_t)-100;
    case 6:
        return dr__rng_below(&t->rng, (uint64_t)1 << (1 + i / 256 % 40));
    default:
        return ((uint64_t)1 << 40) + dr__rng_below(&t->rng, 200);
    }
}

static double real(trial *t, unsigned manner, size_t i)
{
    static const double odd[] = {
        0, -0.0, NAN, INFINITY, -INFINITY, 1e-45, 1e-40, 5e-324, 65504, 65520, 3.4e38, 1e300
    };
    switch (manner) {
    case 0:
        return 0;
    case 1:
        return odd[dr__rng_below(&t->rng, sizeof odd / sizeof *odd)];
    case 2:
        return sin((double)i / 50) * 20;
    case 3:
        return dr__rng_normal(&t->rng);
    case 4:
        return ldexp(dr__rng_normal(&t->rng), (int)dr__rng_below(&t->rng, 60) - 30);
    case 5:
        return (double)i / 16;
    case 6:
        return dr__rng_below(&t->rng, 200) ? dr__rng_normal(&t->rng) : odd[dr__rng_below(&t->rng, 5)];
    default:
        return ldexp(dr__rng_unit(&t->rng), -130);
    }
}

static void fill(trial *t)
{
    const unsigned manner = (unsigned)dr__rng_below(&t->rng, 8);
    const size_t size = dr_dtype_size(t->desc.dtype);
    uint64_t last = 0;
    for (size_t i = 0; i < t->bytes / size; i++) {
        if (t->desc.dtype == DR_F32) {
            const float f = (float)real(t, manner, i);
            memcpy(t->data + i * size, &f, size);
        } else if (t->desc.dtype == DR_F64) {
            const double d = real(t, manner, i);
            memcpy(t->data + i * size, &d, size);
        } else {
            last = integer(t, manner, i, last);
            memcpy(t->data + i * size, &last, size);
        }
    }
}

static void draw_array(trial *t)
{
    static const dr_dtype types[] = { DR_U8,  DR_I8,   DR_U16, DR_I16, DR_I32, DR_I64,
                                      DR_F16, DR_BF16, DR_F32, DR_F64, DR_BOOL };
    const dr_dtype type = types[dr__rng_below(&t->rng, sizeof types / sizeof *types)];
    const size_t most = TRIAL_BYTES / dr_dtype_size(type);
    const size_t room = dr__rng_below(&t->rng, 4) ? 1 + dr__rng_below(&t->rng, most) : 1 + dr__rng_below(&t->rng, 40);
    t->desc = (dr_desc){ .dtype = type, .n_dims = (int)dr__rng_below(&t->rng, 4) };
    size_t n = 1;
    for (int i = 0; i < t->desc.n_dims; i++) {
        const size_t left = room / n;
        const size_t extent = i + 1 == t->desc.n_dims ? left : 1 + dr__rng_below(&t->rng, left < 9 ? left : 9);
        t->desc.dims[i] = (int64_t)extent;
        n *= extent;
    }
    if (t->desc.n_dims && !dr__rng_below(&t->rng, 40)) {
        t->desc.dims[0] = 0;
        n = 0;
    }
    if (!dr__rng_below(&t->rng, 10))
        t->desc.spacing[1] = 0.5;
    t->bytes = n * dr_dtype_size(type);
}

static double value(const uint8_t *data, size_t i, dr_dtype type)
{
    float f;
    double d;
    if (type == DR_F64) {
        memcpy(&d, data + i * 8, 8);
        return d;
    }
    memcpy(&f, data + i * 4, 4);
    return f;
}

/* Within the stated error; NaNs stay NaNs, infinities what they are. */
static void expect_close(const trial *t)
{
    const size_t size = dr_dtype_size(t->desc.dtype);
    for (size_t i = 0; i < t->bytes / size; i++) {
        const double x = value(t->data, i, t->desc.dtype), y = value(t->back, i, t->desc.dtype);
        const double allowed = fmax(t->peeked.max_abs_error, t->peeked.max_rel_error * fabs(x));
        const bool good = isnan(x) ? isnan(y) : isinf(x) ? y == x : fabs(x - y) <= allowed;
        if (!good)
            fail_msg("%s, %s: element %zu: %.17g became %.17g, allowed is %g", t->spec, dr_dtype_name(t->desc.dtype), i,
                     x, y, allowed);
    }
}

/* Whether a lossy codec may refuse the array: it has a value that is not finite, or a large one. */
static bool is_odd(const trial *t)
{
    const size_t size = dr_dtype_size(t->desc.dtype);
    for (size_t i = 0; i < t->bytes / size; i++)
        if (!(fabs(value(t->data, i, t->desc.dtype)) < 65520))
            return true;
    return false;
}

static bool encode(trial *t)
{
    dr_error err = { 0 };
    dr_codec *codec = NULL;
    size_t bound;
    assert_ok(dr_codec_open(t->spec, NULL, &codec, &err));
    const bool lossless = dr_codec_about(codec).lossless;
    assert_string_equal(dr_codec_about(codec).spec, t->spec);
    assert_true(dr_codec_takes(codec, t->desc.dtype));
    assert_ok(dr_codec_bound(codec, &t->desc, &bound, &err));
    assert_true(bound <= TRIAL_FRAME);
    const dr_status status = dr_codec_encode(codec, &t->desc, t->data, t->frame, bound, &t->frame_bytes, &err);
    if (status != DR_OK && (lossless || status != DR_ERR_ARG || !is_odd(t) || !strstr(err.text, "cannot hold")))
        fail_msg("%s: %s", t->spec, err.text);
    if (status == DR_OK) { /* exactly enough room is enough; one byte less is not */
        uint8_t *again = malloc(t->frame_bytes);
        size_t n;
        assert_ok(dr_codec_encode(codec, &t->desc, t->data, again, t->frame_bytes, &n, &err));
        assert_int_equal(n, t->frame_bytes);
        assert_memory_equal(again, t->frame, n);
        assert_int_equal(dr_codec_encode(codec, &t->desc, t->data, again, t->frame_bytes - 1, &n, &err), DR_ERR_LIMIT);
        free(again);
    }
    dr_codec_close(&codec);
    return status == DR_OK;
}

bool trial_round(trial *t)
{
    dr_error err = { 0 };
    draw_array(t);
    draw_spec(t);
    fill(t);
    if (!encode(t))
        return false;
    assert_ok(dr_codec_peek(t->frame, t->frame_bytes, &t->peeked, &err));
    assert_int_equal(t->peeked.raw_bytes, t->bytes);
    assert_string_equal(t->peeked.spec, t->spec);
    assert_memory_equal(&t->peeked.desc, &t->desc, sizeof t->desc);
    if (t->peeked.lossless)
        assert_true(t->frame_bytes <= t->bytes + 150);
    memset(t->back, 0xa5, sizeof t->back);
    assert_ok(dr_codec_decode(t->frame, t->frame_bytes, NULL, t->back, t->bytes, &err));
    for (size_t i = t->bytes; i < sizeof t->back; i++)
        assert_int_equal(t->back[i], 0xa5);
    if (t->peeked.lossless)
        assert_memory_equal(t->back, t->data, t->bytes);
    else
        expect_close(t);
    return true;
}

void trial_damage(trial *t)
{
    static uint8_t again[TRIAL_BYTES + 8];
    dr_codec_frame peeked;
    uint8_t *bad = malloc(t->frame_bytes); /* of its own, so that a sanitizer sees reads beyond its end */
    size_t n = t->frame_bytes;
    memcpy(bad, t->frame, n);
    if (!dr__rng_below(&t->rng, 4))
        n = dr__rng_below(&t->rng, n);
    else
        for (uint64_t k = 1 + dr__rng_below(&t->rng, 3); k; k--)
            bad[dr__rng_below(&t->rng, n)] ^= (uint8_t)(1u << dr__rng_below(&t->rng, 8));
    if (dr_codec_peek(bad, n, &peeked, NULL) == DR_OK && peeked.raw_bytes <= TRIAL_BYTES &&
        dr_codec_decode(bad, n, NULL, again, peeked.raw_bytes, NULL) == DR_OK) {
        /* Flips may have undone each other, or changed what nothing depends on. */
        assert_int_equal(peeked.raw_bytes, t->bytes);
        assert_memory_equal(again, t->back, t->bytes);
    }
    free(bad);
}

void trial_rounds(uint64_t seed, long n_rounds, int n_damages)
{
    static trial t;
    const dr__rng_name name = { .seed = seed };
    printf("CODEC_SEED=%llu\n", (unsigned long long)seed);
    t.rng = dr__rng_open(&name, 0);
    long n_frames = 0;
    for (long i = 0; i < n_rounds; i++) {
        if (!trial_round(&t))
            continue;
        n_frames++;
        for (int k = 0; k < n_damages; k++)
            trial_damage(&t);
    }
    assert_true(n_frames > n_rounds / 2);
}
