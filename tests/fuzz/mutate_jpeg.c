/* mutate_jpeg.c: how libFuzzer changes inputs that are five bytes of choices and a JPEG.
 *
 * Bytes changed anywhere mostly break a header.  Here the choices, one part of the file (a segment's contents with its
 * length put right, or entropy-coded data) or the file's structure change, and two inputs exchange parts of one kind.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_image.h"
#include "unit/codec/image/jpeg_part.h"
#include "unit/codec/image/odd_jpeg.h"

enum { MAX_PARTS = 200 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t max_size, unsigned seed);

/* A segment that has grown or shrunk says so. */
static void fix_length(struct blob *file, const struct jpeg_part *p, size_t size)
{
    if (p->marker && p->size >= 4 && size >= 4 && size - 2 <= 0xffff) {
        file->data[p->at + 2] = (uint8_t)((size - 2) >> 8);
        file->data[p->at + 3] = (uint8_t)(size - 2);
    }
}

static void replace_part(struct blob *file, const struct jpeg_part *p, const uint8_t *bytes, size_t n)
{
    blob_splice(file, p->at, p->size, bytes, n);
    fix_length(file, p, n);
}

/* The contents of one part by libFuzzer's own means. */
static void change_part(struct blob *file, uint64_t *s)
{
    struct jpeg_part parts[MAX_PARTS];
    uint8_t bytes[4096];
    int n = jpeg_split(file->data, file->size, parts, MAX_PARTS);
    if (!n)
        return;
    const struct jpeg_part *p = &parts[random_in(s, 0, n - 1)];
    size_t head = !p->marker ? 0 : p->size >= 4 ? 4 : p->size, body = p->size - head;
    if (p->size + 64 > sizeof(bytes))
        return;
    memcpy(bytes, file->data + p->at, p->size);
    body = LLVMFuzzerMutate(bytes + head, body, random_in(s, 0, 1) && body ? body : body + 64);
    replace_part(file, p, bytes, head + body);
}

/* Puts the file behind its choices; what does not fit is cut off. */
static size_t give_back(uint8_t *data, struct blob *file, size_t max_size)
{
    size_t n = file->size < max_size - FUZZ_PREFIX ? file->size : max_size - FUZZ_PREFIX;
    memcpy(data + FUZZ_PREFIX, file->data, n);
    blob_free(file);
    return FUZZ_PREFIX + n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t s = seed;
    int kind = random_in(&s, 0, 9);
    if (size <= FUZZ_PREFIX || max_size <= FUZZ_PREFIX || kind == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (kind == 1) {
        LLVMFuzzerMutate(data, FUZZ_PREFIX, FUZZ_PREFIX);
        return size;
    }
    struct blob file = blob_copy(data + FUZZ_PREFIX, size - FUZZ_PREFIX);
    if (kind < 6)
        change_part(&file, &s);
    else
        any_jpeg_change(&s)->apply(&file, &s);
    return give_back(data, &file, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t max_size, unsigned seed)
{
    struct jpeg_part ours[MAX_PARTS], theirs[MAX_PARTS];
    uint64_t s = seed;
    if (a_size <= FUZZ_PREFIX || b_size <= FUZZ_PREFIX || max_size <= FUZZ_PREFIX)
        return 0;
    struct blob file = blob_copy(a + FUZZ_PREFIX, a_size - FUZZ_PREFIX);
    int n = jpeg_split(file.data, file.size, ours, MAX_PARTS);
    int m = jpeg_split(b + FUZZ_PREFIX, b_size - FUZZ_PREFIX, theirs, MAX_PARTS);
    const struct jpeg_part *mine = &ours[random_in(&s, 0, n - 1)];
    for (int k = random_in(&s, 0, m - 1), i = 0; i < m; i++) {
        const struct jpeg_part *p = &theirs[(k + i) % m];
        if (p->marker == mine->marker) {
            replace_part(&file, mine, b + FUZZ_PREFIX + p->at, p->size);
            break;
        }
    }
    memcpy(out, a, FUZZ_PREFIX);
    return give_back(out, &file, max_size);
}
