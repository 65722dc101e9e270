/* toy.h: a data set made up on the spot, whose samples can be told to be bad or slow, and tapes: what a loader gave, in
 * the form that tests compare.
 */
#ifndef DR_TESTS_TOY_H
#define DR_TESTS_TOY_H

#include "unit/cm.h"

#include <jansson.h>

#include <drapps/loader.h>
#include <drapps/sample.h>

/* Fields of a toy sample: "image" uint8 (h, w, 3), "label" int64 = its id, "tokens" int32 (id % 5), "boxes" float32
 * (id % 3, 4), "text" "sample-<id>", "odd" uint8 (4), of which sets with `odd_every` give a different shape than they
 * promise. */
typedef struct toy {
    uint64_t n;
    int64_t h, w;       /* 0: 8 x 6 */
    uint64_t bad_every; /* samples with id % bad_every == bad_at cannot be read; 0: all can */
    uint64_t bad_at;
    uint64_t odd_every;  /* samples whose "odd" has another shape than planned */
    uint64_t slow_every; /* id % slow_every == 0 takes slow_us */
    unsigned slow_us;
    uint64_t large_from, large_to; /* ids from .. to, without the end: images `large` times as high and wide */
    int64_t large;
    bool stamped;                 /* a sample is told by its number; else by its bytes */
    bool fails_readers;           /* their reads fail; those of workers do not */
    void (*on_read)(uint64_t id); /* called by each read */
} toy;

dr_dataset *toy_set(const toy *options);

/* How often read was called, over all toy sets. */
uint64_t toy_reads(void);

dr_graph *graph_of(const char *json); /* NULL: no ops */

/* JPEG bytes in a folder of the test's own; the caller removes it with remove_folder. */
dr_dataset *jpeg_set(char folder[64], int n);
dr_dataset *jpeg_set_sized(char folder[64], int n, int w, int h); /* all of one size; 0: as jpeg_set */

/* Cuts image i of such a folder off in the middle of its data. */
void truncate_jpeg(const char *folder, int i);
void remove_folder(const char *folder);

typedef struct taped_batch {
    uint64_t number, epoch, n, padded, hash;
    uint64_t *ids, *positions;
    char *bad;
} taped_batch;

typedef struct tape {
    taped_batch *batches;
    size_t n;
} tape;

/* All that a batch holds, in one number. */
uint64_t batch_hash(const dr_batch *batch);

void tape_add(tape *t, dr_batch *batch);
void tape_free(tape *t);

/* Reads until the epoch is over or `most` batches were read (-1: all); anything but DR_OK and DR_END is a failure. */
void tape_read(tape *t, dr_loader *loader, int64_t most);

/* The same batches with the same content, in the same order. */
void assert_same_tape(const tape *a, const tape *b, const char *what);

/* Every position 0 .. n - 1 once, but for those that padding repeats (>= n). */
void assert_each_once(const tape *t, uint64_t n);

/* Reads what is left: with what t has, each of n positions once.  Frees the tape and closes the loader. */
void finish_epoch(tape *t, dr_loader **loader, uint64_t n);

/* The loader's statistics, to be freed with json_decref; and one of them, a whole number. */
json_t *loader_stats(dr_loader *loader);
json_int_t stat_of(dr_loader *loader, const char *key);

dr_loader *open_loader(dr_dataset *set, dr_graph *graph, const dr_loader_options *options);

/* Standard options of these tests; nobody turns the knobs while they run. */
dr_loader_options options_of(uint64_t batch_size, int workers);

/* One whole epoch. */
tape epoch_of(dr_dataset *set, dr_graph *graph, const dr_loader_options *options);

#endif
