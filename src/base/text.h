/* text.h: a text that grows while it is written.
 *
 * Begins as { 0 }.  When memory runs out, `failed` is set and the text no longer changes, so callers check it once, at
 * the end.  The text ends with a 0 once something was added; its owner frees it with dr__free.
 */
#ifndef DR_BASE_TEXT_H
#define DR_BASE_TEXT_H

#include <string.h>

#include "base/grow.h"

typedef struct dr__text {
    char *text;
    size_t n, cap;
    bool failed;
} dr__text;

static inline void dr__text_add(dr__text *t, const char *text, size_t n)
{
    char *grown = t->failed ? NULL : dr__grow(t->text, &t->cap, t->n + n + 1, 1);
    if (!grown) {
        t->failed = true;
        return;
    }
    t->text = grown;
    memcpy(t->text + t->n, text, n);
    t->n += n;
    t->text[t->n] = 0;
}

static inline void dr__text_say(dr__text *t, const char *text)
{
    dr__text_add(t, text, strlen(text));
}

#endif
