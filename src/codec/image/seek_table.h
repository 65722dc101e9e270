/* seek_table.h: packed seek points in memory, for several threads at once.
 *
 * The table is cut into shards by the top bits of the hash, each with a lock of its own.  A shard is thereby a stretch
 * of the order that entries have in a file, and saving copies one shard at a time.
 */
#ifndef DR_CODEC_SEEK_TABLE_H
#define DR_CODEC_SEEK_TABLE_H

#include "codec/image/seek_file.h"

enum { DR__SEEK_SHARDS = 64 };

typedef struct dr__seek_table dr__seek_table;

/* `limit`: most bytes, tables included.  NULL: out of memory. */
dr__seek_table *dr__seek_table_new(size_t limit);
void dr__seek_table_free(dr__seek_table **table);

/* As dr__seek_store_find; and any entry, unpacked into `to`. */
bool dr__seek_table_find(dr__seek_table *table, const dr__seek_key *key, dr__seek_points *points);
bool dr__seek_table_get(dr__seek_table *table, const dr__seek_key *key, dr__seek_unpacker *unpack, void *to);

/* The rank of what is kept; 0: nothing.  Of an image, how many points. */
uint32_t dr__seek_table_rank(dr__seek_table *table, const dr__seek_key *key);

/* How often entries were dropped because a file has them. */
uint64_t dr__seek_table_drops(const dr__seek_table *table);

/* Keeps points that are more than those kept.  in_file: the file has some of this image; it was asked after `drops` was
 * taken from dr__seek_table_drops.  False: entries were dropped since, so that the file may know more: ask it again. */
bool dr__seek_table_put(dr__seek_table *table, const dr__seek_key *key, const dr__seek_points *points, bool in_file,
                        uint64_t drops);

/* The same for an entry that is packed already; one of a higher rank takes the place of what is kept. */
bool dr__seek_table_put_packed(dr__seek_table *table, const dr__seek_entry *entry, uint32_t rank, bool in_file,
                               uint64_t drops);

size_t dr__seek_table_bytes(const dr__seek_table *table);
uint64_t dr__seek_table_packed_bytes(const dr__seek_table *table); /* what they would take in a file */
uint64_t dr__seek_table_new_images(const dr__seek_table *table);   /* of which the file has nothing */

/* --- saving: copy every shard, then drop what was copied, or keep it --- */

typedef struct dr__seek_copy {
    dr__seek_entry *entries; /* in order */
    size_t n, cap;
    dr__section bytes;
} dr__seek_copy;

/* A shard's entries into `copy`, which is reused; false: out of memory. */
bool dr__seek_table_copy(dr__seek_table *table, int shard, dr__seek_copy *copy);
void dr__seek_copy_free(dr__seek_copy *copy);

/* Ends saving: drops the entries that were copied and not put anew since (saved), or leaves everything as it is. */
void dr__seek_table_end_save(dr__seek_table *table, bool saved);

#endif
