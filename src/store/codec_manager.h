/* codec_manager.h: which codec a sample is stored with.
 *
 * For each codec c and state r of the machine the utility is
 *
 *     U(c|r) = alpha * v + beta * rho + gamma * compat + bonus
 *
 *   v       speed of decompression as a part of the fastest codec's, rho: ratio as a part of the densest codec's
 *   compat  1 - t(c,r) / max_c t: how well the codec fits the machine as it is now.  t is the time that a sample of S
 *           bytes takes: S / (rho * B) to read it at B bytes/s and S / (v * cores) to decompress it, the sum of both,
 * or the larger one where they go on side by side.  Where only a part h of the samples finds room, it is h * t + (1 -
 * h) * the time to make a sample.  A t above four times the least one counts as that: one very slow codec would make
 * all others look alike. bonus   grows while a codec goes unmeasured (discounted UCB), so that what was abandoned is
 * tried again: the further behind, the less often
 *
 * gamma is much larger than alpha and beta, which decide between codecs that take the same time.  The codec of the
 * greatest utility is chosen; of equal ones the first in the table.
 *
 * The manager keeps, for each codec and class of data, a mean of ratio and of CPU time that follows the latest
 * measurements, and for all of them how much longer things take than their CPU time (others use the CPUs).  It knows no
 * clock and no lock: times are passed in, and callers that share one have a lock for it.
 *
 * B is what reads of samples took, once there were enough.  Until then, in the epoch that writes them, it is what
 * probes took: reads of what has just been written, as it is found in the page cache and as it comes from the disk. How
 * much will be found there depends on the codec: the denser it is, the more finds room.
 */
#ifndef DR_STORE_CODEC_MANAGER_H
#define DR_STORE_CODEC_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

enum {
    DR__CODECS_MOST = 16,
    DR__CODEC_AUTO = -1,
    DR__CODEC_READ = 4 << 20,                 /* bytes of timed reads after which these count */
    DR__DISK_BYTES_PER_S = 500 * 1000 * 1000, /* until then; the disks of rented machines */
};

/* X(id, name): what a sample mostly consists of. */
#define DR__CLASS_MAP(X)                                                                                               \
    X(ENCODED, "encoded")                                                                                              \
    X(TEXT, "text")                                                                                                    \
    X(PIXELS, "8-bit")                                                                                                 \
    X(INTEGERS, "integers")                                                                                            \
    X(FLOATS, "floats")

typedef enum dr__data_class {
#define DR__CLASS_ENUM(id, name) DR__CLASS_##id,
    DR__CLASS_MAP(DR__CLASS_ENUM)
#undef DR__CLASS_ENUM
        DR__N_CLASSES
} dr__data_class;

typedef struct dr__codec_weights {
    double alpha, beta, gamma;
    double bonus;  /* weight of the bonus */
    double window; /* choices over which measurements fade */
} dr__codec_weights;

/* r: what the machine has for this. */
typedef struct dr__codec_resources {
    double cores;       /* that decompress, at least 1 */
    double bytes_per_s; /* B, of the tier; 0: what was measured */
    bool overlapped;    /* reading and decompressing go on side by side */
    double capacity;    /* bytes that the tier may take; 0: everything finds room */
    double wanted;      /* raw bytes of all samples that could be kept */
    double make_s;      /* time of one core to make one raw byte where it is not kept */
    double reuse;       /* reads for each time that a sample is compressed; 0: compressing costs nothing */
    double page_cache;  /* stored bytes that the system may keep in memory; 0: none */
} dr__codec_resources;

typedef struct dr__codec_history {
    double n;                  /* measurements, older ones count less */
    double share;              /* stored bytes for each raw one */
    double encode_s, decode_s; /* CPU seconds for each raw byte; decoding includes the check */
    double n_decoded;
} dr__codec_history;

typedef struct dr__codec_manager {
    dr__codec_weights weights;
    dr__codec_resources resources;
    int forced; /* wire id that is obeyed; DR__CODEC_AUTO */
    int n;      /* codecs */
    uint8_t wire_id[DR__CODECS_MOST];
    const char *name[DR__CODECS_MOST];
    dr__codec_history history[DR__N_CLASSES][DR__CODECS_MOST];
    uint64_t n_choices[DR__N_CLASSES];
    double wall_ns, cpu_ns;       /* of decompression: how much longer than its CPU time it takes; older ones fade */
    uint64_t read_bytes, read_ns; /* what the storage took, without decompression; older ones fade */
    double cached_s, disk_s;      /* for each byte that a probe read from the page cache, and not; 0: no probe yet */
} dr__codec_manager;

/* What a codec was worth when a choice was made. */
typedef struct dr__codec_terms {
    double v, rho, compat, bonus, utility; /* utility: the weighted sum; INFINITY: never measured */
    double seconds;                        /* t for a raw byte */
} dr__codec_terms;

typedef enum dr__codec_why { DR__CODEC_FORCED, DR__CODEC_BEST, DR__CODEC_PROBE } dr__codec_why;

typedef struct dr__codec_choice {
    dr__data_class class;
    dr__codec_why why; /* PROBE: the bonus made it the best */
    int which;         /* index in the manager's table */
    bool measure;      /* the caller is to measure decompression as well */
    int n;
    dr__codec_terms terms[DR__CODECS_MOST];
} dr__codec_choice;

/* With the codecs of this build, default weights, one core, and nothing known. */
void dr__codec_manager_init(dr__codec_manager *manager);

/* The same with a table of the caller's; names are borrowed. */
void dr__codec_manager_init_with(dr__codec_manager *manager, const uint8_t *wire_ids, const char *const *names, int n);

/* Obeys a codec from now on (its wire id), or chooses again (DR__CODEC_AUTO); false: it is not in the table. */
bool dr__codec_manager_force(dr__codec_manager *manager, int wire_id);

/* Chooses for the next sample. */
void dr__codec_choose(dr__codec_manager *manager, dr__data_class class, dr__codec_choice *out);

/* Records that a sample was compressed from `raw` to `stored` bytes (equal if it did not become smaller). */
void dr__codec_note_encoded(dr__codec_manager *manager, dr__data_class class, int which, size_t raw, size_t stored,
                            uint64_t cpu_ns);

/* Records that a sample was checked and decompressed to `raw` bytes.  wall_ns: the elapsed time, waits for a CPU
 * included; 0: not known. */
void dr__codec_note_decoded(dr__codec_manager *manager, dr__data_class class, int which, size_t raw, uint64_t cpu_ns,
                            uint64_t wall_ns);

/* Records that a thread read stored bytes of the tier.  ns: its time divided by the number of threads that were
 * reading, which is the time of the storage. */
void dr__codec_note_read(dr__codec_manager *manager, uint64_t bytes, uint64_t ns);

/* Records a probe: `bytes` were read from the page cache, and again after the system had dropped them. */
void dr__codec_note_probe(dr__codec_manager *manager, uint64_t bytes, uint64_t cached_ns, uint64_t disk_ns);

/* Whether enough reads were measured, so that probes are no longer needed. */
bool dr__codec_knows_reads(const dr__codec_manager *manager);

/* Index of a codec in the table; -1: it is not there. */
int dr__codec_index(const dr__codec_manager *manager, unsigned wire_id);

/* The bandwidth B for samples whose stored bytes are this share of the raw ones: given, measured, probed or the
 * default. */
double dr__codec_bytes_per_s(const dr__codec_manager *manager, double share);

/* What a sample mostly consists of. */
dr__data_class dr__data_class_of(const dr_desc *fields, int n);
const char *dr__data_class_name(dr__data_class class);

/* Writes a choice and its reasons, as a sentence or as the members of a JSON object; returns text. */
const char *dr__codec_explain(const dr__codec_manager *manager, const dr__codec_choice *choice, char *text,
                              size_t size);
const char *dr__codec_choice_json(const dr__codec_manager *manager, const dr__codec_choice *choice, char *text,
                                  size_t size);

/* The time to read `bytes` at DR__DISK_BYTES_PER_S. */
uint64_t dr__disk_ns(uint64_t bytes);

#endif
