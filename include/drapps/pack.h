/* pack.h: packed sets: data sets as tar shards, with indexes for fast reading and checksums.
 *
 *   dr_pack *pack = NULL;
 *   dr_pack_options options;
 *   dr_pack_defaults(&options);
 *   dr_pack_open(set, "folder", &options, &pack, &err);
 *   while ((status = dr_pack_run(pack, 100, &err)) == DR_AGAIN)
 *       ... show dr_pack_get_stats ...
 *   dr_pack_close(&pack);
 *
 * A packed set is a folder of tar files in WebDataset form, with an index beside each and a manifest, drapps-set.json
 * (docs/shards.md).  dr_dataset_open reads it like any other data set.  Samples have the order and the ids that they
 * had in the data set which was packed, so that seeds give the same batches.
 *
 * The same input makes the same shards, byte for byte, whatever the number of threads.  Files appear under their names
 * when they are complete and on disk; readers see a set when its manifest appears.  A packing that was interrupted,
 * also by kill -9, continues after the last complete shard when it is begun again with the same arguments.
 */
#ifndef DRAPPS_PACK_H
#define DRAPPS_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/dataset.h>
#include <drapps/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_pack dr_pack;

/* How to pack.  Fill it with dr_pack_defaults, then change what differs.  Texts are borrowed for the call that takes
 * the struct. */
typedef struct dr_pack_options {
    size_t size;            /* sizeof(dr_pack_options), so that it can grow */
    const char *name;       /* shards are called NAME-000000.tar, ...; default "shard" */
    uint64_t shard_bytes;   /* a shard ends before it would be larger, if it has a sample; default 512 MiB */
    uint64_t shard_samples; /* a shard has no more samples; 0, the default: any number */
    int workers;            /* threads that make samples; 0, the default: as many as the container allows */
    dr_graph *graph;        /* ops to run before storing; NULL, the default: samples are stored as they are.  Copied */
    int n_nodes;            /* how many of its first nodes; -1, the default: as many as draw nothing and are
                               worth it, but none where decoded images would be stored in their full size and take
                               more than their files */
    const char *codec;      /* what compresses arrays and texts: a spec of drapps/codec.h, "none" (the default), "auto"
                               (what dr_codec_choose takes for the first sample), or one for each field:
                               "image=shuffle+zstd,*=none".  Encoded images and other compressed data stay as they are */
    bool append;            /* add to a set that is there; default false */
    bool seek_points;       /* learn the seek points of JPEGs, which decodes them once; default true */
    bool keep_bad;          /* go on at a sample that is bad: one whose images cannot be decoded keeps its files as they
                               are, one that cannot be made is stored as bad; default false: stop there */
    bool check_space;       /* refuse to begin where the disk has too little room; default true */
    bool check_images;      /* decode the images of samples that are stored as they are, so that damaged ones are known;
                               JPEGs that have seek points are decoded anyway; default true */
} dr_pack_options;

/**
 * Set all options to their defaults.
 *
 * @param options The options to fill, `size` included.
 */
DR_API void dr_pack_defaults(dr_pack_options *options);

/**
 * Begin to pack a data set, or continue an interrupted packing.
 *
 * @param set     The data set, to which the result holds a reference.  All its samples are packed, in their order;
 *                selections and mixtures are refused.
 * @param folder  The folder of the packed set; made where it is missing.
 * @param options How to pack.  NULL: the defaults.
 * @param out     The packing, which the caller closes by dr_pack_close.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE where the folder has a packed set (without append) or one that was begun with other
 *         arguments, or where another process is packing into it; DR_ERR_LIMIT where the disk has too little room;
 *         DR_ERR_ARG for a wrong option, an op that draws or is not exact, or a set that does not fit the one it is
 *         added to; DR_ERR_UNSUPPORTED for selections and mixtures; DR_ERR_IO or DR_ERR_NOMEM.
 */
DR_API dr_status dr_pack_open(dr_dataset *set, const char *folder, const dr_pack_options *options, dr_pack **out,
                              dr_error *err);

/**
 * Pack for a while.
 *
 * @param pack       The packing.
 * @param timeout_ms How long; -1: until it is finished.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK: the set is complete and on disk; DR_AGAIN: the time is over; DR_ERR_IO, DR_ERR_NOT_FOUND,
 *         DR_ERR_FORMAT or DR_ERR_UNSUPPORTED for a sample that cannot be made; DR_ERR_IO where writing failed: then no
 *         incomplete shard stays behind; DR_ERR_LIMIT or DR_ERR_NOMEM.  After a failure every further call fails.
 *
 * @note One thread at a time may call it.
 */
DR_API dr_status dr_pack_run(dr_pack *pack, int timeout_ms, dr_error *err);

/* The progress of a packing. */
typedef struct dr_pack_stats {
    uint64_t samples, samples_total; /* done, with those of an interrupted run; to do in all */
    uint64_t resumed_samples;        /* of them, done by an interrupted run */
    uint64_t bytes;                  /* of shards that this call of dr_pack_open has written */
    uint64_t shards;                 /* complete ones, with those that were there before */
    uint64_t bad;                    /* bad samples that this call of dr_pack_open has stored */
    uint64_t estimated_bytes;        /* what all shards will take, estimated from a few samples; 0: not known */
    int workers;
} dr_pack_stats;

/**
 * Get the progress of a packing.
 *
 * @param pack The packing.
 * @param out  Receives the figures.
 *
 * @note May be called from any thread.
 */
DR_API void dr_pack_get_stats(dr_pack *pack, dr_pack_stats *out);

/**
 * Get a bad sample that was stored (keep_bad).
 *
 * @param pack The packing.
 * @param i    Its number, from 0; of the first 1000.
 * @param key  Receives its key, which belongs to the packing.
 * @param why  Receives what is wrong with it, likewise.
 *
 * @return DR_OK; DR_END: there are no more.
 *
 * @note May be called from any thread.  The texts stay until the packing is closed.
 */
DR_API dr_status dr_pack_bad_sample(dr_pack *pack, size_t i, const char **key, const char **why);

/**
 * Close a packing.  If it is not finished, its complete shards stay, so that it can be continued later; the shard that
 * was being written is deleted.
 *
 * @param pack The packing; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_pack_close(dr_pack **pack);

/**
 * Get the manifest of a packed set.
 *
 * @param set  A data set.
 * @param text Receives the manifest as JSON, which the caller frees by dr_text_free; NULL: the data set is no packed
 *             one.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_dataset_manifest(const dr_dataset *set, char **text, dr_error *err);

/**
 * Get the name of the file that a field's bytes came from, relative to the root of the data set where it has one.
 *
 * @param set   A data set.
 * @param id    The sample, below dr_dataset_size.
 * @param field Number of the field.
 * @param text  Receives the name, terminated.
 * @param size  Room in bytes.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND where the field came from no file; DR_ERR_ARG where there is no such sample or field;
 *         DR_ERR_LIMIT where the name is longer; DR_ERR_IO or DR_ERR_FORMAT where it cannot be read.
 */
DR_API dr_status dr_dataset_file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err);

/* How the data that a packed set was made from has changed since. */
typedef struct dr_pack_changes {
    uint64_t samples; /* compared */
    uint64_t changed; /* differ from what was packed, or cannot be read any more */
    uint64_t touched; /* have another time and the same bytes */
    char names[768];  /* keys of the first few samples that have changed, with ", " between them */
} dr_pack_changes;

/**
 * Compare the samples of one shard of a packed set with the present state of the data set that it was made from.
 * Samples whose files have unchanged sizes and times are not read; others are read and compared by a hash.  Samples
 * found to be equal are remembered in a file beside the shard, if that can be written.
 *
 * @param set     A packed set.
 * @param shard   Number of the shard, from 0.
 * @param source  The data set.
 * @param first   The sample of `source` that is the first one of the shard.
 * @param changes The result is added to it; set it to zeros before the first call.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK, also where samples have changed; DR_ERR_NOT_FOUND or DR_ERR_FORMAT where the file beside the shard
 *         that remembers the samples is missing or damaged; DR_ERR_ARG where there is no such shard or source has fewer
 *         samples; DR_ERR_IO or DR_ERR_NOMEM.
 */
DR_API dr_status dr_dataset_compare(const dr_dataset *set, size_t shard, const dr_dataset *source, uint64_t first,
                                    dr_pack_changes *changes, dr_error *err);

/**
 * Check the files of one shard of a packed set: size and checksum of the shard, of its index, and of the file that
 * remembers its sources, if there is one.  To find out which samples are damaged, read them.
 *
 * @param set   A packed set.
 * @param shard Number of the shard, from 0.
 * @param err   What is wrong with it.  May be NULL.
 *
 * @return DR_OK: both are as they were written; DR_ERR_FORMAT: one is not; DR_ERR_ARG where there is no such shard;
 *         DR_ERR_NOT_FOUND, DR_ERR_IO or DR_ERR_NOMEM.
 */
DR_API dr_status dr_dataset_check_shard(const dr_dataset *set, size_t shard, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
