/* fuzz_request.c: any bytes as what a client sends to a drapps server.
 *
 * The first byte says as what: 0 the body of a request for samples, whose graph is then compiled and cut; 1 the same of
 * the gateway form; 2 a Range header, behind a byte for the size of the object; 3 a tokens file and a header with a
 * token; 4 a path.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/remote_index.h"
#include "format/remote_request.h"
#include "serve/byte_range.h"
#include "serve/heads.h"
#include "serve/tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_ENTRIES = 100 };

static dr_dataset *images(void)
{
    static dr_dataset *set;
    static uint8_t pixels[2 * 4 * 4 * 3];
    static int64_t labels[2];
    if (!set) {
        const dr_array arrays[] = {
            { "image", dr__desc_image(DR_U8, 4, 4, 3), pixels },
            { "label", { .dtype = DR_I64 }, labels },
        };
        dr_array all[2] = { arrays[0], arrays[1] };
        all[0].desc.n_dims = 4;
        memmove(all[0].desc.dims + 1, arrays[0].desc.dims, 3 * sizeof(int64_t));
        all[0].desc.dims[0] = 2;
        all[1].desc.n_dims = 1;
        all[1].desc.dims[0] = 2;
        if (dr_dataset_from_arrays(all, 2, NULL, NULL, &set, NULL) != DR_OK)
            abort();
    }
    return set;
}

/* As a server does for each entry. */
static void compile(const dr__remote_request *r)
{
    dr__heads *heads = dr__heads_new();
    for (size_t i = 0; heads && r->graph && i < r->n_entries && i < 4; i++) {
        const dr__head_key key = { images(), 1, r->graph, r->outputs, r->entries[i].prefix };
        dr__head *head;
        if (dr__heads_take(heads, &key, &head, NULL) != DR_OK)
            continue;
        const dr__program *p = dr__head_program(head);
        if (!p->n_outputs || p->n_batch_nodes || p->graph->n_nodes != r->entries[i].prefix)
            abort();
        dr__heads_give_back(heads, &head);
    }
    if (heads)
        dr__heads_free(&heads);
}

static void check(const dr__remote_request *r)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        const dr__remote_entry *e = &r->entries[i];
        if ((e->codec != DR__REMOTE_NO_CODEC && e->codec >= r->n_codecs) || (e->prefix && !r->graph) ||
            (e->by_ranges && (uint64_t)e->first_range + e->n_ranges > r->n_ranges))
            abort();
    }
}

static void request(const uint8_t *data, size_t size, bool single)
{
    dr__remote_request r, again;
    dr__text text = { 0 };
    const dr_status status = single ? dr__remote_request_parse_single(data, size, &r, NULL)
                                    : dr__remote_request_parse(data, size, MOST_ENTRIES, &r, NULL);
    if (status != DR_OK)
        return;
    check(&r);
    compile(&r);
    dr__remote_request_put(&text, &r);
    if (text.failed || dr__remote_request_parse(text.text, text.n, MOST_ENTRIES, &again, NULL) != DR_OK ||
        again.n_entries != r.n_entries)
        abort();
    dr__remote_request_free(&again);
    dr__remote_request_free(&r);
    dr__free(text.text);
}

static void range(const char *text, uint8_t size)
{
    uint64_t offset = 0, n = 0;
    if (dr__range_parse(text, size, &offset, &n) == DR__RANGE_PART && (!n || offset >= size || n > size - offset))
        abort();
}

static void tokens(const char *text, size_t size)
{
    dr__tokens t;
    if (dr__tokens_parse(text, size, "fuzz", &t, NULL) == DR_OK) {
        const dr__token *found = dr__tokens_find(&t, text);
        if (t.n)
            dr__token_allows(found ? found : &t.all[0], "train");
        dr__tokens_free(&t);
    }
}

/* No part of a path that passes leads anywhere but down. */
static void path(const char *text)
{
    if (dr__remote_path_is_plain(text) && (*text == '/' || !*text || !strcmp(text, "..") || !strncmp(text, "../", 3) ||
                                           strstr(text, "/../") || strstr(text, "//") || strchr(text, '\\')))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    char *text = malloc(size); /* the rest, terminated */
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (data[0] <= 1)
        request(data + 1, size - 1, data[0] == 1);
    else if (data[0] == 2 && size > 1)
        range(text + 1, data[1]);
    else if (data[0] == 3)
        tokens(text, size - 1);
    else if (data[0] == 4)
        path(text);
    free(text);
    return 0;
}
