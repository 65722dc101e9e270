/* codec_choose.c: the codec with the least time to read and decode. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/chain/codec_class.h"
#include "codec/chain/codec_frame.h"

enum { MOST = 16, CLASSES = DR_CODEC_OTHER + 1, TYPES = DR_BOOL + 1, SAMPLE = 256 << 10 };

/* What is worth trying for each class, the fastest to decode first. */
static const char *const candidates[CLASSES][MOST] = {
    [DR_CODEC_MEDIA] = { "none" },
    [DR_CODEC_TEXT] = { "none", "lz4", "lz4hc:9", "snappy", "zstd:1", "zstd:3", "zstd:9" },
    [DR_CODEC_TOKENS] = { "none", "u16", "bitpack", "u24", "svb", "u16+zstd:1", "u16+shuffle+zstd:1", "bitpack+zstd:1",
                          "shuffle+zstd:1", "zstd:3" },
    [DR_CODEC_INTS] = { "none", "bitpack", "delta+bitpack", "delta+svb", "lz4", "shuffle+lz4", "bitshuffle+lz4",
                        "delta+bitshuffle+lz4", "zstd:1", "shuffle+zstd:1", "delta+shuffle+zstd:1",
                        "delta+bitshuffle+zstd:1" },
    [DR_CODEC_FLOATS] = { "none", "lz4", "shuffle+lz4", "bitshuffle+lz4", "delta+bitshuffle+lz4", "zstd:1",
                          "shuffle+zstd:1", "bitshuffle+zstd:1", "delta+shuffle+zstd:1", "delta+bitshuffle+zstd:1" },
    [DR_CODEC_PIXELS] = { "none", "lz4", "snappy", "delta+lz4", "zstd:1", "zstd:3", "delta+zstd:1" },
    [DR_CODEC_OTHER] = { "none", "lz4", "lz4hc:9", "snappy", "zstd:1", "zstd:3", "zstd:9" },
};

static const char *lists[CLASSES][TYPES][MOST + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Those of each list that this build has and that take the type. */
static void fill_lists(void)
{
    dr__chain chain;
    dr__chain_plan plan;
    for (unsigned c = 0; c < CLASSES; c++) {
        for (unsigned type = 0; type < TYPES; type++) {
            size_t n = 0;
            for (unsigned i = 0; i < MOST && candidates[c][i]; i++)
                if (dr__chain_parse(candidates[c][i], &chain, NULL) == DR_OK &&
                    dr__chain_plan_for(&chain, (dr_dtype)type, &plan, NULL) == DR_OK)
                    lists[c][type][n++] = candidates[c][i];
        }
    }
}

const char *const *dr_codec_candidates(dr_codec_class data_class, dr_dtype dtype)
{
    static const char *const none[] = { "none", NULL };
    pthread_once(&once, fill_lists);
    if ((unsigned)data_class >= CLASSES || (unsigned)dtype >= TYPES || !lists[data_class][dtype][0])
        return none;
    return lists[data_class][dtype];
}

void dr_codec_criteria_defaults(dr_codec_criteria *criteria)
{
    *criteria = (dr_codec_criteria){
        .size = sizeof *criteria, .read_bytes_per_s = 500e6, .decode_cores = 1, .encode_weight = 0, .space_weight = 0.05
    };
}

static dr_status check_criteria(const dr_codec_criteria *w, dr_error *err)
{
    if (w->size < sizeof *w)
        return dr__fail(err, DR_ERR_ARG, "codec choice: size must be %zu, got %zu", sizeof *w, w->size);
    if (!(w->read_bytes_per_s > 0) || !(w->decode_cores > 0) || !(w->encode_weight >= 0) || !(w->space_weight >= 0) ||
        !(w->space_weight <= 1))
        return dr__fail(err, DR_ERR_ARG,
                        "codec choice: read_bytes_per_s and decode_cores must be above 0, encode_weight "
                        "not below 0, space_weight from 0 to 1; got %g, %g, %g, %g",
                        w->read_bytes_per_s, w->decode_cores, w->encode_weight, w->space_weight);
    return DR_OK;
}

/* Seconds of the whole array; reading and decoding overlap. */
static double seconds(const dr_codec_criteria *w, const dr_codec_speed *s, double bytes)
{
    const double read = bytes / s->ratio / w->read_bytes_per_s;
    const double decode = bytes / (s->decode_bytes_per_s * w->decode_cores);
    return fmax(read, decode) + w->encode_weight * bytes / s->encode_bytes_per_s;
}

typedef struct choosing {
    const dr_codec_criteria *criteria;
    dr_desc desc; /* of the sample */
    uint8_t *sample, *room;
    size_t sample_bytes, room_bytes;
    double bytes;
    double best; /* the least so far; below 0: none */
} choosing;

/* Tries one codec, and takes it if it is better than the best before. */
static dr_status try_one(choosing *c, const char *spec, dr_codec_choice *out, dr_error *err)
{
    dr_codec *codec;
    dr_codec_speed speed;
    size_t n = 0, bound;
    DR_TRY(dr_codec_measured(spec, out->data_class, &speed, err));
    DR_TRY(dr_codec_open(spec, NULL, &codec, err));
    dr_status status = dr_codec_bound(codec, &c->desc, &bound, err);
    if (status == DR_OK && bound > c->room_bytes) {
        uint8_t *room = dr__realloc(c->room, bound, 1);
        c->room = room ? room : c->room;
        c->room_bytes = room ? bound : c->room_bytes;
        status = room ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "codec choice: no memory for %zu bytes", bound);
    }
    if (status == DR_OK)
        status = dr_codec_encode(codec, &c->desc, c->sample, c->room, c->room_bytes, &n, err);
    if (status == DR_OK) {
        speed.ratio = c->sample_bytes ? (double)c->sample_bytes / (double)n : 1;
        const double t = seconds(c->criteria, &speed, c->bytes),
                     score = t * (1 + c->criteria->space_weight / speed.ratio);
        if (c->best < 0 || score < c->best) {
            c->best = score;
            out->speed = speed;
            out->seconds = t;
            snprintf(out->spec, sizeof out->spec, "%s", dr_codec_about(codec).spec);
        }
    }
    dr_codec_close(&codec);
    return status;
}

dr_status dr_codec_choose(const dr_desc *desc, const void *data, const dr_codec_criteria *criteria,
                          dr_codec_choice *out, dr_error *err)
{
    dr_codec_criteria defaults;
    dr_codec_criteria_defaults(&defaults);
    choosing c = { .criteria = criteria ? criteria : &defaults, .best = -1 };
    size_t bytes;
    DR_TRY(check_criteria(c.criteria, err));
    DR_TRY(dr__codec_desc_bytes(desc, &bytes, err));
    const size_t elem = dr_dtype_size(desc->dtype);
    *out = (dr_codec_choice){ .data_class = dr_codec_classify(desc, data) };
    c.bytes = (double)bytes;
    c.sample = dr__alloc(DR_MAX(DR_MIN(bytes, (size_t)SAMPLE), (size_t)1));
    if (!c.sample)
        return dr__fail(err, DR_ERR_NOMEM, "codec choice: no memory for a sample");
    c.sample_bytes = dr__codec_sample(data, bytes, elem, c.sample, SAMPLE);
    c.desc = (dr_desc){ .dtype = desc->dtype, .n_dims = 1, .dims = { (int64_t)(c.sample_bytes / elem) } };
    dr_status status = DR_OK;
    for (const char *const *spec = dr_codec_candidates(out->data_class, desc->dtype); *spec && status == DR_OK; spec++)
        status = try_one(&c, *spec, out, err);
    dr__free(c.sample);
    dr__free(c.room);
    return status;
}
