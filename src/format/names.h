/* names.h: many short texts in one block.
 *
 * Costs a text its bytes, one zero byte and four bytes of offset.  Offsets are relative to the start of their chunk of
 * texts, so that the block may be larger than 4 GB.
 */
#ifndef DR_FORMAT_NAMES_H
#define DR_FORMAT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DR__NAMES_CHUNK = 4096 };

typedef struct dr__names {
    char *block;
    size_t used, cap;
    uint32_t *offsets;
    size_t n, n_cap;
    size_t *chunks; /* where text i * DR__NAMES_CHUNK begins */
    size_t chunks_cap;
} dr__names;

/* Adds a copy of the text; false: out of memory, or a chunk of texts that together have more than 4 GB. */
bool dr__names_add(dr__names *names, const char *text, size_t len);

/* Gives back the room that growing left over.  Never fails: what cannot be given back stays. */
void dr__names_shrink(dr__names *names);

void dr__names_free(dr__names *names);

static inline size_t dr__names_start(const dr__names *names, size_t i)
{
    return i < names->n ? names->chunks[i / DR__NAMES_CHUNK] + names->offsets[i] : names->used;
}

/* Text i, with a zero byte at its end; borrowed until the next dr__names_add. */
static inline const char *dr__names_get(const dr__names *names, size_t i)
{
    return names->block + dr__names_start(names, i);
}

static inline size_t dr__names_len(const dr__names *names, size_t i)
{
    return dr__names_start(names, i + 1) - dr__names_start(names, i) - 1;
}

/* Bytes of heap in use. */
size_t dr__names_bytes(const dr__names *names);

/* The order of Python's sorted() on names as os.listdir gives them: by code point, where a byte that is no UTF-8
 * stands for U+DC80 .. U+DCFF (surrogateescape). */
int dr__name_compare(const char *a, const char *b);

/* Sorts pointers to texts in that order. */
bool dr__names_sort(const char **texts, size_t n);

#endif
