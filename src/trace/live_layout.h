/* live_layout.h: the layout of a live file, also of one written by another version.
 *
 *   head       magic, format, process (the same in every format); then name, policy and counts
 *   names      of the sensors, flows, knobs, bounds and spreads, in this order, each ended by a 0
 *   state      64-bit words; the first is a sequence number, odd while the rest is being written
 *
 * A reader takes counts and names from the file, so that it can read files of versions with other tables.
 */
#ifndef DR_TRACE_LIVE_LAYOUT_H
#define DR_TRACE_LIVE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/sched.h>

#define DR__LIVE_MAGIC "DRLIVE\r\n"

enum {
    DR__LIVE_FORMAT = 2,
    DR__LIVE_KEPT = 16,              /* decisions in the ring */
    DR__LIVE_MAX_BYTES = 1024 * 1024 /* a file that claims more is rejected */
};

/* The tables whose names and lengths are in the file. */
typedef enum dr__live_table {
    DR__LIVE_SENSORS,
    DR__LIVE_FLOWS,
    DR__LIVE_KNOBS,
    DR__LIVE_BOUNDS,
    DR__LIVE_SPREADS,
    DR__N_LIVE_TABLES
} dr__live_table;

typedef struct dr__live_head {
    char magic[8];
    uint32_t format;
    uint32_t bytes; /* of the file */
    int32_t pid;
    uint32_t loader;      /* 1, 2, ... in the order in which its process opened them */
    uint64_t start_ticks; /* of the process, field 22 of /proc/<pid>/stat: with the pid it identifies a process */
    uint64_t pid_space;   /* inode of its pid namespace; 0: not known */
    char version[32];
    char command[160];
    /* the fields above are the same in every format */
    uint64_t started_ns;
    char name[256];
    char policy[32];
    uint32_t n[DR__N_LIVE_TABLES];
    uint32_t n_cpus; /* length of the array of CPUs */
    uint32_t n_kept;
    uint32_t n_bins; /* of a spread */
    uint32_t reason_bytes;
    uint32_t names_at, names_bytes;
    uint32_t state_at;
} dr__live_head;

enum { DR__LIVE_COMMON = offsetof(dr__live_head, started_ns) };

/* Offsets in the state, in words from its start.  `decisions` is a ring of n_kept decisions that changed a knob or that
 * the guard made, followed by the last decision of any kind. */
typedef struct dr__live_map {
    size_t values, levels, cpu, flow, knobs, bounds, turns, spreads, decisions; /* arrays; turns: one per knob */
    size_t spread_words, decision_words, words; /* sizes: of one spread, one decision, the state */
} dr__live_map;

/* Words before the first array. */
enum {
    DR__LIVE_SEQ,
    DR__LIVE_TIME,
    DR__LIVE_PRESENT,
    DR__LIVE_MODELLED,
    DR__LIVE_CPUS,
    DR__LIVE_DECIDED, /* how many decisions were put into the ring */
    DR__LIVE_FIXED
};

/* Words of a spread; the end in s and the count of each bin follow. */
enum { DR__LIVE_SUM, DR__LIVE_BINS };

/* Words of a decision; knobs before, knobs after and the reason follow. */
enum {
    DR__LIVE_NUMBER,
    DR__LIVE_WHEN,
    DR__LIVE_BOUND,
    DR__LIVE_CHANGED,
    DR__LIVE_GUARDED,
    DR__LIVE_REWARD,
    DR__LIVE_BEFORE
};

void dr__live_map_of(const dr__live_head *head, dr__live_map *out);

/* Fills in the counts and offsets of a head for this version's tables, and `bytes`. */
void dr__live_head_init(dr__live_head *head);

/* Writes the names of this version's tables: head->names_bytes bytes. */
void dr__live_write_names(char *out);

/* Whether the counts and offsets of a head that was read are consistent. */
bool dr__live_head_is_valid(const dr__live_head *head);

#endif
