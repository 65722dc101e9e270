/* made_sample.h: one sample as it goes into a shard: its members as bytes of a tar archive. */
#ifndef DR_PACK_MADE_SAMPLE_H
#define DR_PACK_MADE_SAMPLE_H

#include <drapps/store.h>

#include "base/text.h"
#include "format/set_manifest.h"
#include "format/tar_reader.h"
#include "graph/workbench.h"
#include "pack/source_marks.h"

/* How the samples of one packing are made.  Shared by all makers; nothing changes while they work. */
typedef struct dr__recipe {
    dr_dataset *set;
    const dr__program *program; /* what is run first; NULL: fields are stored as they are */
    const dr__manifest *manifest;
    uint8_t output_of[DR_STORE_FIELDS]; /* with a program: which output each field of the manifest is */
    dr_codec **codecs;                  /* of each field; NULL: none */
    dr__key_form keys;
    uint64_t first_number; /* of the first sample, in names of numbered samples */
    int first_field;       /* whose member comes first */
    bool keep_bad;
    bool check_images; /* samples that are stored as files: decode their images, and what cannot be decoded is bad */
    struct dr__seek_store *seek; /* learns the seek points of JPEGs; NULL: they are not wanted */
} dr__recipe;

/* A member, where it lies in the run of its sample. */
typedef struct dr__made_part {
    size_t name;                   /* where its name begins in `names`, terminated */
    uint64_t header, offset, size; /* from the start of the run */
    uint32_t raw;                  /* size once it is decompressed; 0: it is not compressed */
    uint64_t sum;                  /* xxh3 of its bytes */
    int64_t label;                 /* of a .cls member */
} dr__made_part;

/* A made sample; its memory is reused. */
typedef struct dr__made {
    dr__text run;   /* headers, bytes and padding of its members */
    dr__text names; /* of its members */
    dr__text key;   /* that it has in the data set */
    dr__text value; /* of the member at hand */
    dr__text frame; /* the same, compressed */
    dr__made_part *parts;
    size_t n_parts, parts_cap;
    bool bad;     /* could not be made, or has an image that cannot be decoded */
    dr_error why; /* then */
    dr__source_mark mark;
} dr__made;

void dr__made_free(dr__made *made);

/* Reads a sample and runs the ops; *record is on the bench.  *content, unless NULL: dr__record_hash of what was read, 0
 * where it could not be read.  And the value of a field of the manifest in it. */
dr_status dr__made_read(const dr__recipe *recipe, dr__workbench *bench, uint64_t id, const dr__record **record,
                        uint64_t *content, dr_error *err);
const dr_view *dr__made_value(const dr__recipe *recipe, const dr__record *record, int field);

/* Makes a sample.  The bench is the calling thread's.  Messages name the sample. */
dr_status dr__made_fill(dr__made *made, const dr__recipe *recipe, dr__workbench *bench, uint64_t id, dr_error *err);

#endif
