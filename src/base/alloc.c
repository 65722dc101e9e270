/* alloc.c: malloc with a switch that lets tests make it fail. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long n_calls;
static atomic_long fail_at;
static atomic_bool fail_sticky;

static bool must_fail(void)
{
    long at = atomic_load_explicit(&fail_at, memory_order_relaxed); /* a test switch: no data hangs on its order */
    if (!at)
        return false;
    long n = atomic_fetch_add(&n_calls, 1) + 1;
    return n == at || (n > at && atomic_load(&fail_sticky));
}

long dr__alloc_fail_at(long n, bool sticky)
{
    long calls = atomic_exchange(&n_calls, 0);
    atomic_store(&fail_sticky, sticky);
    atomic_store(&fail_at, n);
    return calls;
}

void *dr__alloc(size_t size)
{
    return must_fail() ? NULL : malloc(size ? size : 1);
}

void *dr__alloc_zero(size_t count, size_t size)
{
    return must_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void *dr__realloc(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (!dr__mul_size(count, size, &bytes) || must_fail())
        return NULL;
    return realloc(p, bytes ? bytes : 1);
}

char *dr__strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = dr__alloc(n);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

void dr__free(void *p)
{
    free(p);
}

void *dr__alloc_aligned(size_t size)
{
    if (size > SIZE_MAX - 63 || must_fail())
        return NULL;
    return aligned_alloc(64, size ? (size + 63) & ~(size_t)63 : 64);
}

void dr__free_aligned(void *p)
{
    free(p);
}

void *dr__pages_new(size_t size)
{
    if (must_fail())
        return NULL;
    void *p = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void dr__pages_free(void *p, size_t size)
{
    if (p)
        munmap(p, size ? size : 1);
}

bool dr__mul_size(size_t a, size_t b, size_t *out)
{
    if (a && b > SIZE_MAX / a)
        return false;
    *out = a * b;
    return true;
}

bool dr__add_size(size_t a, size_t b, size_t *out)
{
    if (b > SIZE_MAX - a)
        return false;
    *out = a + b;
    return true;
}
