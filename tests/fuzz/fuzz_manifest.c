/* fuzz_manifest.c: any bytes as the manifest of a packed set, with a right checksum where they are JSON; and as an
 * array in a member of it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/npy_array.h"
#include "format/set_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const dr__manifest *m)
{
    static const char *const exts[] = { "jpg", "image.npy", "image.drz", "x.spacing.txt", "label.npy.zst", "cls", "" };
    dr__member_form form;
    for (int i = 0; i < 7; i++)
        if (dr__manifest_member_of(m, exts[i], &form) >= m->n_fields)
            abort();
    for (size_t i = 0; i < m->n_shards; i++)
        if (strchr(m->shards[i].name, '/') || m->shards[i].samples > m->shards[i].size)
            abort();
}

static void read_text(const char *text, size_t size)
{
    dr__manifest m;
    dr_error err = { 0 };
    if (dr__manifest_decode(text, size, "fuzz", &m, &err) != DR_OK)
        return;
    use(&m);
    char *again = dr__manifest_encode(&m);
    if (!again)
        abort();
    dr__manifest_free(&m);
    if (dr__manifest_decode(again, strlen(again), "fuzz", &m, &err) != DR_OK)
        abort();
    dr__manifest_free(&m);
    dr__free(again);
}

static void read_with_sum(const uint8_t *data, size_t size)
{
    json_t *o = json_loadb((const char *)data, size, 0, NULL);
    if (json_is_object(o)) {
        char hex[20];
        json_object_del(o, "xxh3");
        char *text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
        snprintf(hex, sizeof hex, "%016llx", text ? (unsigned long long)XXH3_64bits(text, strlen(text)) : 0);
        free(text);
        json_object_set_new(o, "xxh3", json_string(hex));
        text = json_dumps(o, 0);
        if (text)
            read_text(text, strlen(text));
        free(text);
    }
    json_decref(o);
}

static void read_array(const uint8_t *data, size_t size)
{
    dr_view view;
    for (int n = 0; n < 4; n++) {
        const dr_desc want = { .dtype = n & 1 ? DR_U8 : DR_F32,
                               .n_dims = n,
                               .dims = { DR_UNKNOWN, DR_UNKNOWN, DR_UNKNOWN } };
        size_t bytes;
        if (dr__npy_read(data, size, &want, &view, NULL) == DR_OK &&
            (!dr__desc_bytes_dense(&view.desc, &bytes) || view.data < data || view.data + bytes != data + size))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_text((const char *)data, size);
    read_with_sum(data, size);
    read_array(data, size);
    return 0;
}
