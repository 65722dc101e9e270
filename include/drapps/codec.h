/* codec.h: compression of bytes and arrays, as a library of its own.
 *
 * `libdrapps-codec` has all functions of this header and nothing of the loading engine (pkg-config: drapps-codec);
 * `libdrapps` has them, too.
 *
 * A codec is named by a spec: stages joined by "+", each with an optional parameter after ":".  The data passes through
 * the stages from left to right.
 *
 *     zstd:3                  bytes by Zstandard, level 3
 *     shuffle+lz4             byte planes of the elements, then LZ4
 *     delta+bitshuffle+zstd   differences of neighbours, bit planes, then Zstandard at its default level
 *     bf16+shuffle+zstd       float32 rounded to bfloat16: lossy
 *     u16                     integers that fit into 16 bits, as such
 *     delta+svb               differences of neighbours as 1 to 4 bytes each
 *
 * dr_codec_stages_json lists the stages.  Array stages come first; at most one byte stage ends the chain.
 *
 * There are two forms of encoded data.  A frame (dr_codec_encode) describes itself: the stages, the type and the shape
 * of the array, its size and a checksum.  A file (dr_codec_compress) is what the reference tools read and write: .zst,
 * .lz4, .sz.
 *
 * Threads: all functions may be called from any thread.  A dr_codec and a dr_codec_dict never change after they were
 * made, so any number of threads may use one at once.
 */
#ifndef DRAPPS_CODEC_H
#define DRAPPS_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>
#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A chain of stages that is ready for use. */
typedef struct dr_codec dr_codec;

/* A Zstandard dictionary: what small samples of one kind have in common. */
typedef struct dr_codec_dict dr_codec_dict;

enum {
    DR_CODEC_MAX_STAGES = 6,  /* of a chain */
    DR_CODEC_SPEC_TEXT = 128, /* size of a canonical spec in bytes, its terminating zero included */
};

/* Most bytes of an array that one frame takes. */
#define DR_CODEC_MAX_BYTES ((uint64_t)1 << 46)

/**
 * Get a table of all stages of this build.
 *
 * @return A JSON array that lives as long as the process: objects with "name", "kind" ("bytes", "filter", "token" or
 *         "lossy"), "summary", "types" (names of the element types that it takes), "library" (with its version, or
 *         null), "parameter" (null, or an object with "name", "min", "max" and "default"), "extension" (of files, or
 *         null) and "error" (of lossy stages, in words, or null).  Never NULL.
 */
DR_API const char *dr_codec_stages_json(void);

/**
 * Free memory that a function of this header has handed out.
 *
 * @param p The memory; NULL is fine.
 */
DR_API void dr_codec_free(void *p);

/* ---- Handles ---------------------------------------------------------------------------------------------------- */

/**
 * Make a codec from its spec.
 *
 * @param spec The stages, as above.
 * @param dict A dictionary for the chain's zstd stage, or NULL.  The codec keeps a reference of its own.
 * @param out  Receives the codec, which the caller owns and frees by dr_codec_close.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: the spec is wrong, or it has no zstd stage for the dictionary; DR_ERR_UNSUPPORTED: this
 *         build lacks a stage; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_open(const char *spec, dr_codec_dict *dict, dr_codec **out, dr_error *err);

/**
 * Free a codec.
 *
 * @param codec The codec; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_codec_close(dr_codec **codec);

/* What a codec is.  Texts live as long as the codec. */
typedef struct dr_codec_facts {
    const char *spec;      /* canonical: every parameter is written out */
    bool lossless;         /* decoding gives the same bytes back */
    const char *extension; /* of the files that dr_codec_compress writes: ".zst"; NULL: it writes none */
} dr_codec_facts;

/**
 * Get the facts of a codec.
 *
 * @param codec A codec.
 *
 * @return The facts; their texts are borrowed from the codec.
 */
DR_API dr_codec_facts dr_codec_about(const dr_codec *codec);

/**
 * Find out whether a codec takes arrays of an element type.
 *
 * @param codec A codec.
 * @param dtype The element type; DR_U8 stands for bytes.
 *
 * @return Whether it does.
 */
DR_API bool dr_codec_takes(const dr_codec *codec, dr_dtype dtype);

/* ---- Frames ----------------------------------------------------------------------------------------------------- */

/**
 * Get the most bytes that dr_codec_encode may write.
 *
 * @param codec A codec.
 * @param desc  Type and shape of the array.  Every extent is known.
 * @param out   Receives the number of bytes.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: the codec does not take the type, or the shape is wrong; DR_ERR_LIMIT: the array has more
 *         than DR_CODEC_MAX_BYTES.
 */
DR_API dr_status dr_codec_bound(const dr_codec *codec, const dr_desc *desc, size_t *out, dr_error *err);

/**
 * Encode an array, or bytes, into a frame.
 *
 * Blocks that a lossless chain does not make smaller are stored as they are, so a frame is never much larger than
 * the array.
 *
 * @param codec A codec.
 * @param desc  Type and shape of the array; kind, layout and spacing are kept in the frame.  Bytes are DR_U8 with one
 *              axis.
 * @param data  The elements, dense, the last axis fastest; any alignment.
 * @param out   Receives the frame.
 * @param cap   Room in `out`, in bytes; the result of dr_codec_bound is enough.
 * @param n_out Receives the size of the frame.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_LIMIT: `cap` is too small; DR_ERR_ARG: the codec does not take the type, or a lossy stage
 *         cannot keep its error bound for a value, which the text names; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_encode(const dr_codec *codec, const dr_desc *desc, const void *data, void *out, size_t cap,
                                 size_t *n_out, dr_error *err);

/* The header of a frame. */
typedef struct dr_codec_frame {
    dr_desc desc;                  /* type and shape of the array */
    uint64_t raw_bytes;            /* size of the array */
    char spec[DR_CODEC_SPEC_TEXT]; /* of the codec that made the frame, canonical */
    uint32_t dict_id;              /* of the dictionary that decoding needs; 0: none */
    bool lossless;
    double max_abs_error; /* lossy: |decoded - original| is at most the larger of max_abs_error */
    double max_rel_error; /* and max_rel_error * |original|; 0 where lossless */
} dr_codec_frame;

/**
 * Read the header of a frame.  Nothing is decoded and the checksum is not checked; the sizes were checked against each
 * other, against the size of the frame and against what its stages can make of so many bytes.
 *
 * @param frame The frame.
 * @param size  Its size in bytes.
 * @param out   Receives the header.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORMAT: not a frame, or damaged; DR_ERR_UNSUPPORTED: made by a newer version, or by a stage
 *         that this build lacks.
 */
DR_API dr_status dr_codec_peek(const void *frame, size_t size, dr_codec_frame *out, dr_error *err);

/**
 * Decode a frame.
 *
 * @param frame    The frame.
 * @param size     Its size in bytes.
 * @param dict     The dictionary that the frame names, or NULL.
 * @param out      Receives the elements, dense; any alignment.
 * @param out_size Size of `out`: exactly the raw_bytes of dr_codec_peek.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return DR_OK: `out` has what was encoded (lossy stages: within the stated error), by its checksum; DR_ERR_FORMAT:
 *         damaged, `out` holds garbage; DR_ERR_ARG: `out_size` is another, or the dictionary is missing or another;
 *         DR_ERR_UNSUPPORTED: as for dr_codec_peek; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_decode(const void *frame, size_t size, const dr_codec_dict *dict, void *out, size_t out_size,
                                 dr_error *err);

/* ---- Files of the reference tools ------------------------------------------------------------------------------- */

/**
 * Compress bytes into a file that the reference tools read: `zstd -d`, `lz4 -d`, and readers of framed Snappy.  The
 * codec must be one byte stage.
 *
 * @param codec A codec whose facts have an extension.
 * @param data  The bytes.
 * @param size  Their number.
 * @param out   Receives the file, which the caller frees by dr_codec_free.
 * @param n_out Receives its size.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: the codec has array stages, or its byte stage has no file format; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_compress(const dr_codec *codec, const void *data, size_t size, uint8_t **out, size_t *n_out,
                                   dr_error *err);

/**
 * Decompress a .zst, .lz4 or .sz file, recognised by its first bytes; also several of them in a row.
 *
 * @param file     The bytes of the file.
 * @param size     Their number.
 * @param dict     A dictionary for .zst files that need one, or NULL.
 * @param max_size The most bytes that the result may have.
 * @param out      Receives the bytes, which the caller frees by dr_codec_free.
 * @param n_out    Receives their number.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORMAT: damaged, cut off, or none of these formats; DR_ERR_LIMIT: more than `max_size` bytes;
 *         DR_ERR_UNSUPPORTED: this build cannot read the format; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_decompress(const void *file, size_t size, const dr_codec_dict *dict, size_t max_size,
                                     uint8_t **out, size_t *n_out, dr_error *err);

/* ---- Dictionaries ----------------------------------------------------------------------------------------------- */

/**
 * Train a dictionary from samples.  It pays for many small samples of one kind (text, JSON, annotations of less than
 * about 16 KB each).
 *
 * @param samples   The samples, one after the other.
 * @param sizes     The size of each, in bytes.
 * @param n_samples Their number; some hundreds at least.
 * @param max_size  The most bytes that the dictionary may have; 112640 is zstd's own default.
 * @param out       Receives the dictionary, which the caller frees by dr_codec_dict_close.
 * @param err       The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: too few samples to find anything that they have in common; DR_ERR_UNSUPPORTED: a build
 *         without zstd; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_dict_train(const void *samples, const size_t *sizes, size_t n_samples, size_t max_size,
                                     dr_codec_dict **out, dr_error *err);

/**
 * Make a dictionary from the bytes of one, as `zstd --train` writes them, too.
 *
 * @param data The bytes, copied.
 * @param size Their number.
 * @param out  Receives the dictionary, which the caller frees by dr_codec_dict_close.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORMAT: not a dictionary; DR_ERR_UNSUPPORTED: a build without zstd; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_dict_open(const void *data, size_t size, dr_codec_dict **out, dr_error *err);

/**
 * Get the bytes of a dictionary.
 *
 * @param dict A dictionary.
 * @param size Receives the number of bytes.
 *
 * @return The bytes, borrowed from the dictionary.
 */
DR_API const void *dr_codec_dict_bytes(const dr_codec_dict *dict, size_t *size);

/**
 * Get the number that names a dictionary in frames and files.
 *
 * @param dict A dictionary.
 *
 * @return Its number, not 0.
 */
DR_API uint32_t dr_codec_dict_id(const dr_codec_dict *dict);

/**
 * Free a dictionary.  Codecs that were made with it keep it.
 *
 * @param dict The dictionary; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_codec_dict_close(dr_codec_dict **dict);

/* ---- Choosing a codec ------------------------------------------------------------------------------------------- */

/* X(NAME, value, text, summary).  The classes of data that codecs are measured for and chosen by. */
#define DR_CODEC_CLASS_MAP(X)                                                                                          \
    X(MEDIA, 1, "media", "compressed already: JPEG, PNG, archives, noise")                                             \
    X(TEXT, 2, "text", "UTF-8 text, JSON, CSV")                                                                        \
    X(TOKENS, 3, "tokens", "integers from a vocabulary, in the order of a text")                                       \
    X(INTS, 4, "ints", "other integers of 2, 4 or 8 bytes")                                                            \
    X(FLOATS, 5, "floats", "float16, bfloat16, float32, float64")                                                      \
    X(PIXELS, 6, "pixels", "decoded images and volumes of 8-bit values")                                               \
    X(OTHER, 7, "other", "any other bytes")

typedef enum dr_codec_class {
#define DR_CODEC_CLASS_ENUM(name, value, text, summary) DR_CODEC_##name = value,
    DR_CODEC_CLASS_MAP(DR_CODEC_CLASS_ENUM)
#undef DR_CODEC_CLASS_ENUM
} dr_codec_class;

/**
 * Get the name of a class: "text", "floats".
 *
 * @param data_class A class.
 *
 * @return A static text; "?" for a value that is none.  Never NULL.
 */
DR_API const char *dr_codec_class_name(dr_codec_class data_class);

/**
 * Classify some data by its type, its kind, its first bytes and the entropy of a sample of it.
 *
 * @param desc Type and shape of the array.
 * @param data The elements, dense.
 *
 * @return The class.
 */
DR_API dr_codec_class dr_codec_classify(const dr_desc *desc, const void *data);

/* How well a codec does on a class of data. */
typedef struct dr_codec_speed {
    double encode_bytes_per_s; /* raw bytes, of one core */
    double decode_bytes_per_s;
    double ratio;  /* raw bytes / encoded bytes */
    bool measured; /* on this machine; else the built-in figures of another */
} dr_codec_speed;

/**
 * Measure a codec on an array: encode and decode it again and again, and keep the fastest time of each.
 *
 * @param codec     A codec.
 * @param desc      Type and shape of the array.
 * @param data      The elements, dense.
 * @param budget_ns The time after which no further round begins; each is done at least once.
 * @param out       Receives the figures.
 * @param err       The reason of a failure.  May be NULL.
 *
 * @return DR_OK; as dr_codec_encode and dr_codec_decode.
 */
DR_API dr_status dr_codec_measure(const dr_codec *codec, const dr_desc *desc, const void *data, uint64_t budget_ns,
                                  dr_codec_speed *out, dr_error *err);

/**
 * Keep measured figures for this user, CPU model and versions of the compression libraries, in the user's cache folder.
 * They replace what was kept for the same codec and class, and are seen by later calls of dr_codec_measured in all
 * processes that start afterwards, and at once in this one.
 *
 * @param spec       The codec.
 * @param data_class The class of the data.
 * @param speed      The figures.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: the spec or a figure is wrong; DR_ERR_IO: the folder cannot be written, or the user has
 *         none; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_keep(const char *spec, dr_codec_class data_class, const dr_codec_speed *speed, dr_error *err);

/**
 * Get the figures of a codec for a class of data: those kept on this machine, else built-in ones.
 *
 * @param spec       The codec.
 * @param data_class The class of the data.
 * @param out        Receives the figures.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND: nothing is known of this codec; DR_ERR_ARG: the spec is wrong.
 */
DR_API dr_status dr_codec_measured(const char *spec, dr_codec_class data_class, dr_codec_speed *out, dr_error *err);

/**
 * Get the codecs worth trying for an element type and a class of data.
 *
 * @param data_class The class of the data.
 * @param dtype      The element type.
 *
 * @return A NULL-terminated list of static specs, all lossless and of this build, the fastest first.  "none" alone for
 *         media.  Never NULL.
 */
DR_API const char *const *dr_codec_candidates(dr_codec_class data_class, dr_dtype dtype);

/* The criteria by which a codec is chosen.  Fill it with dr_codec_criteria_defaults, then change what differs. */
typedef struct dr_codec_criteria {
    size_t size;             /* of this struct, for later versions */
    double read_bytes_per_s; /* how fast encoded bytes arrive; 500e6 */
    double decode_cores;     /* cores that decode beside reading; 1 */
    double encode_weight; /* how much a second of encoding counts, in seconds of reading; 0 where data is written once
                             and read often */
    double space_weight;  /* prefers smaller results among codecs of about the same speed: 0 to 1; 0.05 */
} dr_codec_criteria;

/**
 * Fill in the defaults.
 *
 * @param criteria Overwritten, its `size` included.
 */
DR_API void dr_codec_criteria_defaults(dr_codec_criteria *criteria);

/* The result of dr_codec_choose. */
typedef struct dr_codec_choice {
    char spec[DR_CODEC_SPEC_TEXT]; /* of the codec, for dr_codec_open */
    dr_codec_class data_class;
    dr_codec_speed speed; /* its kept or built-in speeds, and its ratio on a sample of this data */
    double seconds;       /* predicted for the whole array */
} dr_codec_choice;

/**
 * Choose the codec for some data: the one with the least time to read and decode it, reading and decoding at the same
 * time.  Ratios are tried on a sample of the data; speeds are those of dr_codec_measured.  Data that is already
 * compressed is stored as it is.
 *
 * @param desc     Type and shape of the array.
 * @param data     The elements, dense.
 * @param criteria By what to choose; NULL: the defaults.
 * @param out      Receives the choice.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: the shape or a criterion is wrong; DR_ERR_NOMEM.
 */
DR_API dr_status dr_codec_choose(const dr_desc *desc, const void *data, const dr_codec_criteria *criteria,
                                 dr_codec_choice *out, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
