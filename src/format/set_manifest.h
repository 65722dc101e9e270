/* set_manifest.h: the manifest of a packed set, "drapps-set.json": what the folder holds and how it was made.
 *
 * A packed set is a folder of tar shards in WebDataset form with this file, which is replaced as a whole: readers see
 * either the shards of one generation or those of the next.  Beside each shard lies its index, NAME.drapps-shard, whose
 * checksum the manifest has.  The manifest has a checksum of itself.
 *
 * A member of a sample is `key.ext`.  What its field and form are follows from ext:
 *
 *   cls                the label, as text
 *   origin.json        the sample's key, and the names of the files that its fields came from
 *   FIELD.npy          an array
 *   FIELD.spacing.txt  three numbers: the distance of a volume's voxels
 *   an image extension the field "image", encoded
 *   FIELD, FIELD.ext   a field of bytes or text
 *   ...zst, ...lz4, ...sz  one of these, compressed as the tools do it
 *   FIELD.drz, ...drz  an array, or one of these, as a frame of drapps/codec.h
 */
#ifndef DR_FORMAT_SET_MANIFEST_H
#define DR_FORMAT_SET_MANIFEST_H

#include <jansson.h>

#include <drapps/codec.h>

#include "format/dataset_internal.h"

#define DR__SET_MANIFEST "drapps-set.json"
#define DR__SET_LOCK "drapps-pack.lock"    /* while packing: locked by the packer */
#define DR__SET_JOURNAL "drapps-pack.json" /* while packing: the shards that are finished, and what is being done */
#define DR__SHARD_INDEX ".drapps-shard"
#define DR__ORIGIN_EXT "origin.json"
#define DR__SPACING_END ".spacing.txt"

/* How a field is stored. */
typedef enum dr__stored {
    DR__STORED_FILE = 0, /* encoded bytes or text: as they are */
    DR__STORED_CLS = 1,  /* a label */
    DR__STORED_KEY = 2,  /* the sample's key: in the index */
    DR__STORED_NPY = 3,  /* an array */
} dr__stored;

/* How the keys of a shard's samples follow from the names of members. */
typedef enum dr__key_form {
    DR__KEY_PATH = 0,   /* the name of the first member */
    DR__KEY_STEM = 1,   /* that name up to its first dot */
    DR__KEY_NUMBER = 2, /* samples are numbered; the first member, origin.json, has the key */
} dr__key_form;

typedef struct dr__set_field {
    dr__field field;
    dr__stored stored;
    char codec[DR_CODEC_SPEC_TEXT]; /* spec of what compresses it; "": nothing does */
    char packed[8];                 /* with a codec: what its members end with: ".zst", ".drz" */
    bool lossy;
    char member[DR__FIELD_NAME]; /* FIELD above: the field's name in lower case, or "fN" where that is no file name */
} dr__set_field;

typedef struct dr__set_shard {
    char name[256]; /* of the file in the folder */
    uint64_t size, sum, samples;
    uint64_t index_size, index_sum; /* of its index */
    dr__key_form keys;
} dr__set_shard;

/* A data set that was packed. */
typedef struct dr__set_source {
    char *name; /* for people */
    uint64_t fingerprint, samples;
} dr__set_source;

typedef struct dr__manifest {
    uint64_t generation; /* 1; one more with each addition */
    dr__set_field *fields;
    int n_fields;
    dr__set_shard *shards;
    size_t n_shards, shards_cap;
    dr__set_source *sources;
    size_t n_sources, sources_cap;
    char **classes;
    size_t n_classes;
    char *prefix; /* canonical JSON of the ops that were run; NULL: none */
    char *plan;   /* of a journal: canonical JSON of what is being done; NULL: a manifest */
} dr__manifest;

void dr__manifest_free(dr__manifest *manifest);

/* From the text of a manifest or journal; `name` is for messages. */
dr_status dr__manifest_decode(const char *text, size_t size, const char *name, dr__manifest *out, dr_error *err);

/* The text, owned by the caller (dr__free); NULL: out of memory. */
char *dr__manifest_encode(const dr__manifest *manifest);

/* Reads FOLDER/FILE.  DR_ERR_NOT_FOUND where there is none. */
dr_status dr__manifest_read(const char *folder, const char *file, const dr__source_options *options, dr__manifest *out,
                            dr_error *err);

/* Is there such a file in the folder? */
bool dr__manifest_exists(const char *folder, const char *file);

/* Adds a shard or a source; false: out of memory. */
bool dr__manifest_add_shard(dr__manifest *manifest, const dr__set_shard *shard);
bool dr__manifest_add_source(dr__manifest *manifest, const char *name, uint64_t fingerprint, uint64_t samples);

/* The fingerprint of the set: that of its source where the set has the source's samples as they are. */
uint64_t dr__manifest_fingerprint(const dr__manifest *manifest);

/* The form of a member. */
typedef enum dr__member_form {
    DR__MEMBER_PLAIN = 0,
    DR__MEMBER_SPACING = 1, /* of a volume */
    DR__MEMBER_TOOL = 2,    /* compressed: dr_codec_decompress */
    DR__MEMBER_FRAME = 3,   /* dr_codec_decode */
} dr__member_form;

/* The field that members with this extension (in lower case) belong to, and how; -1: none. */
int dr__manifest_member_of(const dr__manifest *manifest, const char *ext, dr__member_form *form);

/* The field of plain members with this extension; -1: none. */
int dr__manifest_field_of(const dr__manifest *manifest, const char *ext);

/* The name of a field in members, from its own: see dr__set_field. */
void dr__member_name(const char *field, int number, char member[DR__FIELD_NAME]);

#endif
