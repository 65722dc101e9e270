/* scratch.c: three blocks for each thread that encodes or decodes. */
#include "codec/chain/scratch.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"

enum { KEEP_BYTES = 4 << 20 };

typedef struct scratch {
    uint8_t *data[DR__SCRATCH_COUNT];
    size_t size[DR__SCRATCH_COUNT];
} scratch;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static void end(void *p)
{
    scratch *s = p;
    for (unsigned i = 0; i < DR__SCRATCH_COUNT; i++)
        dr__free_aligned(s->data[i]);
    dr__free(s);
}

static void make_key(void)
{
    have_key = !pthread_key_create(&key, end);
}

static scratch *mine(void)
{
    pthread_once(&once, make_key);
    if (!have_key)
        return NULL;
    scratch *s = pthread_getspecific(key);
    if (s)
        return s;
    s = dr__alloc_zero(1, sizeof *s);
    if (s && pthread_setspecific(key, s)) {
        dr__free(s);
        s = NULL;
    }
    return s;
}

static void drop(scratch *s, unsigned which)
{
    dr__free_aligned(s->data[which]);
    s->data[which] = NULL;
    s->size[which] = 0;
}

uint8_t *dr__scratch(unsigned which, size_t size)
{
    scratch *s = mine();
    if (!s || (s->data[which] && s->size[which] >= size))
        return s ? s->data[which] : NULL;
    drop(s, which);
    s->data[which] = dr__alloc_aligned(size ? size : 1);
    s->size[which] = s->data[which] ? size : 0;
    return s->data[which];
}

void dr__scratch_done(void)
{
    scratch *s = mine();
    for (unsigned i = 0; s && i < DR__SCRATCH_COUNT; i++)
        if (s->size[i] > KEEP_BYTES)
            drop(s, i);
}
