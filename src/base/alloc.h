/* alloc.h: the one way to heap memory.  Tests make the n-th allocation fail (dr__alloc_fail_at). */
#ifndef DR_BASE_ALLOC_H
#define DR_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns NULL when memory is short or the size overflows.  dr__alloc_zero clears. */
void *dr__alloc(size_t size);
void *dr__alloc_zero(size_t count, size_t size);
void *dr__realloc(void *p, size_t count, size_t size);
char *dr__strdup(const char *s);
void dr__free(void *p);

/* 64-byte aligned blocks; freed by dr__free_aligned. */
void *dr__alloc_aligned(size_t size);
void dr__free_aligned(void *p);

/* Zeroed pages from the system, and back to it at once: for what is large and short-lived, which malloc would keep. */
void *dr__pages_new(size_t size);
void dr__pages_free(void *p, size_t size);

/* a * b, or a + b; false (and *out untouched) on overflow. */
bool dr__mul_size(size_t a, size_t b, size_t *out);
bool dr__add_size(size_t a, size_t b, size_t *out);

/* Test hook: the n-th allocation from now (1 = the next) fails, and each one after it when `sticky`; 0 switches off.
 * Returns how many allocations happened since the last call. */
long dr__alloc_fail_at(long n, bool sticky);

#endif
