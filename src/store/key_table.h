/* key_table.h: where the sample of each key lies: 24 bytes a key, open addressing. */
#ifndef DR_STORE_KEY_TABLE_H
#define DR_STORE_KEY_TABLE_H

#include <drapps/store.h>

enum { DR__MOST_DATA_FILES = 1 << 20 };

typedef struct dr__key_location {
    uint32_t file;
    uint64_t offset; /* a multiple of 64, below 2^50 */
} dr__key_location;

typedef struct dr__key_table {
    struct dr__key_slot *slots; /* NULL: empty */
    size_t n_slots;             /* a power of two */
    size_t n, n_used;           /* keys; slots that have or had one */
} dr__key_table;

/* Sets the location of a key, whether it had one or not; false: out of memory, or no such location. */
bool dr__key_table_set(dr__key_table *table, const dr_store_key *key, dr__key_location location);
bool dr__key_table_find(const dr__key_table *table, const dr_store_key *key, dr__key_location *out);

/* Forgets a key, if it still lies there. */
void dr__key_table_drop(dr__key_table *table, const dr_store_key *key, dr__key_location location);
void dr__key_table_free(dr__key_table *table);

#endif
