/* scratch.h: a folder of the test's own, and samples to keep in a store. */
#ifndef DR_TESTS_SCRATCH_H
#define DR_TESTS_SCRATCH_H

#include "unit/cm.h"

#include <drapps/store.h>

extern char scratch[64]; /* the folder */

/* For cmocka: makes and removes it. */
int scratch_make(void **state);
int scratch_remove(void **state);

/* Sample `number`: 1 to 3 fields of different types, which depend on the number alone.  Memory is the test's. */
typedef struct sample {
    int n;
    dr_view fields[3];
    double memory[3][64];
} sample;

void sample_make(sample *s, unsigned number);

dr_store *store_open(const char *identity, uint64_t limit);
dr_store_key key_of(const dr_store *store, unsigned number);
bool store_put(dr_store *store, unsigned number);

/* Is the sample found?  If so, it must be the right one to the bit. */
bool store_has(dr_store *store, unsigned number);

/* Makes it look for what others have put when it next finds nothing, however long ago it last did. */
void store_look_again(dr_store *store);

/* How many data files there are. */
size_t n_data_files(void);

/* The path of a store's only data file. */
void data_path(char path[512]);

/* A whole file; owned by the caller. */
uint8_t *load_file(const char *path, size_t *size);
void save_file(const char *path, const void *data, size_t size);

#endif
