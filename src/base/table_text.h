/* table_text.h: a table as JSON text, made when it is first asked for and kept for the life of the process. */
#ifndef DR_BASE_TABLE_TEXT_H
#define DR_BASE_TABLE_TEXT_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef _Atomic(char *) dr__table_text;

/* `list` makes the array.  "[]" where memory is short, and then it is tried again at the next call. */
static inline const char *dr__table_text_of(dr__table_text *kept, json_t *(*list)(void))
{
    char *text = atomic_load(kept), *none = NULL;
    if (text)
        return text;
    json_t *rows = list();
    text = json_dumps(rows, JSON_COMPACT);
    json_decref(rows);
    if (text && !atomic_compare_exchange_strong(kept, &none, text)) {
        free(text); /* another thread was first */
        text = none;
    }
    return text ? text : "[]";
}

#endif
