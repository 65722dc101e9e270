/* range_stage.h: reads of an image only what the sample's crop needs.
 *
 * What is drawn for a sample is known before it is read, and with the size of its image the crop is, too.  So, where a
 * note (codec/image/jpeg_note.h) says what the image's header is and where its rows begin, the sample is planned first,
 * and then the ranges are read that its decode needs; the record has them as its part (dr__record_part).  Anything that
 * goes wrong with ranges, a file that was replaced among it, leads to the whole file, which is read and noted anew, so
 * that samples and errors are the same with and without ranges.
 *
 * A sample that was read whole and decoded is noted: by its name and version, in the store of seek points.
 *
 * In "auto" mode samples from remote sources are read in ranges.  Of local files the first are read whole and timed.
 * Unless half of them take longer than DR__RANGES_SLOW_NS nothing more is done: their bytes are in the page cache.
 * (Half, not the mean: a thread that waits for a CPU takes long, too.)  Else samples are noted, and read in ranges for
 * a trial; from then on whichever takes less time for a byte that is stored is used, and the other one for a few
 * samples, so that the comparison stays true.
 */
#ifndef DR_EXEC_RANGE_STAGE_H
#define DR_EXEC_RANGE_STAGE_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "codec/image/jpeg_note.h"
#include "format/dataset_internal.h"

struct dr__exec;
struct dr__job;
struct dr__workbench;

enum {
    DR__RANGES_SLOW_NS = 200000,
    DR__RANGES_TRIAL = 32,           /* samples of each kind before they are compared */
    DR__RANGES_AGAIN = 64,           /* one of this many samples is read in the way that is not used */
    DR__RANGES_LOCAL_GAP = 64 << 10, /* of local files: bytes between two ranges that are not worth another read */
};

/* Means over the last samples of one kind. */
typedef struct dr__range_times {
    atomic_uint_fast64_t n;
    _Atomic double ns, bytes; /* of a sample: time to read it, bytes that are stored of it */
    _Atomic double slow;      /* share of those above DR__RANGES_SLOW_NS */
} dr__range_times;

typedef struct dr__range_stage {
    /* fixed when the loader is opened */
    bool on;      /* the program has a step whose input may be read in ranges, and the user allows it */
    bool always;  /* "on" */
    int step;     /* that step */
    uint64_t gap; /* DRAPPS_RANGES_GAP: bytes between two ranges that are read together; unset: by the source */
    bool has_gap;
    const char *why; /* not: for people; static */

    atomic_bool remote;            /* samples come from a remote source */
    dr__range_times whole, ranged; /* local, auto */
    atomic_uint_fast64_t turn;
    atomic_uint_fast64_t samples, reads, again, noted;
    atomic_uint_fast64_t bytes_read, bytes_stored; /* of samples read in ranges */
} dr__range_stage;

/* Whether mode is "auto", "on" or "off". */
bool dr__ranges_mode_is_known(const char *mode);

/* Called when program, seek store and cache are there.  "on" where ranges cannot be used is not an error: what can be
 * read in ranges depends on the data, sample by sample. */
void dr__ranges_open(struct dr__exec *e, const char *mode);

/* What an earlier sample has left in bench->record says nothing of the next one, wherever that comes from. */
void dr__ranges_forget(struct dr__workbench *bench);

/* Reads the job's sample into bench->record: ranges of it, or all. */
dr_status dr__ranges_read(struct dr__exec *e, struct dr__workbench *bench, const struct dr__job *job, dr_error *err);

/* The same, whole, after a sample that was read in ranges could not be planned or run. */
dr_status dr__ranges_read_whole(struct dr__exec *e, struct dr__workbench *bench, const struct dr__job *job,
                                dr_error *err);

/* For a sample whose bytes are not read by its set (offload_stage.h).  The record has a head in place of the image:
 * plans which ranges the sample needs, and gets the record ready for them.  False: it has to be read whole. */
bool dr__ranges_plan(struct dr__exec *e, struct dr__workbench *bench, const struct dr__sample_ref *ref,
                     const dr__jpeg_note *note, dr__byte_ranges *ranges);

/* Counts a sample whose ranges were read in vain. */
void dr__ranges_again(struct dr__exec *e, const struct dr__workbench *bench);

/* Counts a sample that was read in ranges. */
void dr__ranges_count(struct dr__exec *e, const dr__byte_ranges *ranges, uint64_t stored);

/* Notes the sample in bench->record, which was read whole and ran, if it should be. */
void dr__ranges_note(struct dr__exec *e, struct dr__workbench *bench);

/* Which way local samples are read next in auto mode; a pure function of the times. */
typedef enum dr__range_choice { DR__READ_WHOLE, DR__READ_WHOLE_AND_NOTE, DR__READ_RANGES } dr__range_choice;
dr__range_choice dr__ranges_choose(const dr__range_times *whole, const dr__range_times *ranged, uint64_t turn);
void dr__range_times_add(dr__range_times *times, uint64_t ns, uint64_t bytes);

/* Adds the members "range_..." to a loader's statistics. */
void dr__ranges_stats(const struct dr__exec *e, json_t *stats);

/* Writes what was read in ranges to the trace, if anything was. */
void dr__ranges_trace(const struct dr__exec *e);

/* Writes one line for people, or nothing: whether ranges are read, and how many bytes of how many. */
void dr__ranges_explain(const struct dr__exec *e, char *text, size_t size);

#endif
