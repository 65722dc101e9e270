/* format_table.c: all formats, and their list as JSON. */
#include <pthread.h>
#include <stdio.h>

#include <drapps/graph.h>

#include "format/dataset.h"

const dr_format_def *const dr__format_table[] = {
    &dr__format_flat, &dr__format_folder, &dr__format_list, &dr__format_tar, NULL,
};

static char json[4096];
static pthread_once_t json_once = PTHREAD_ONCE_INIT;

/* The texts in the table need no escapes; a test parses the result. */
static void make_json(void)
{
    size_t used = 0;
    for (int i = 0; dr__format_table[i] && used < sizeof json; i++) {
        const dr_format_def *f = dr__format_table[i];
        used +=
            (size_t)snprintf(json + used, sizeof json - used, "%s{\"name\":\"%s\",\"summary\":\"%s\",\"uses\":\"%s\"}",
                             i ? "," : "[", f->name, f->summary, f->uses);
    }
    if (used < sizeof json)
        snprintf(json + used, sizeof json - used, "]");
}

const char *dr_formats_json(void)
{
    pthread_once(&json_once, make_json);
    return json;
}
