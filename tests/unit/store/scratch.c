/* scratch.c: see scratch.h. */
#include "unit/store/scratch.h"

#include <glob.h>

#include "store/store_parts.h"

char scratch[64];

static dr_error err;

int scratch_make(void **state)
{
    (void)state;
    strcpy(scratch, "/tmp/drapps-store-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

int scratch_remove(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

void sample_make(sample *s, unsigned number)
{
    static const dr_dtype types[] = { DR_U8,  DR_I8,   DR_U16, DR_I16, DR_I32, DR_I64,
                                      DR_F16, DR_BF16, DR_F32, DR_F64, DR_BOOL };
    s->n = 1 + (int)(number % 3);
    for (int i = 0; i < s->n; i++) {
        dr_desc d = { .dtype = types[(number + (unsigned)i) % 11], .n_dims = (int)((number + (unsigned)i) % 4) };
        for (int k = 0; k < d.n_dims; k++)
            d.dims[k] = 1 + (number + (unsigned)k) % 3;
        memset(s->memory[i], (int)(number * 7 + (unsigned)i), sizeof s->memory[i]);
        s->fields[i] = (dr_view){ .data = (uint8_t *)s->memory[i], .desc = d };
    }
}

dr_store *store_open(const char *identity, uint64_t limit)
{
    dr_store *s = NULL;
    assert_ok(dr_store_open(scratch, identity, limit, &s, &err));
    return s;
}

dr_store_key key_of(const dr_store *store, unsigned number)
{
    return dr_store_key_of(store, &number, sizeof number);
}

bool store_put(dr_store *store, unsigned number)
{
    sample s;
    dr_store_key key = key_of(store, number);
    sample_make(&s, number);
    return dr_store_put(store, &key, s.fields, s.n);
}

static size_t bytes_of(const dr_desc *d)
{
    size_t n = dr_dtype_size(d->dtype);
    for (int i = 0; i < d->n_dims; i++)
        n *= (size_t)d->dims[i];
    return n;
}

bool store_has(dr_store *store, unsigned number)
{
    sample want;
    dr_stored found;
    dr_store_key key = key_of(store, number);
    sample_make(&want, number);
    if (!dr_store_find(store, &key, &found))
        return false;
    uint8_t *memory = malloc(found.bytes + 1);
    bool good = dr_store_read(store, &found, memory);
    if (good) {
        assert_int_equal(found.n_fields, want.n);
        for (int i = 0; i < want.n; i++) {
            assert_memory_equal(&found.fields[i], &want.fields[i].desc, sizeof found.fields[i]);
            assert_memory_equal(memory + found.at[i], want.fields[i].data, bytes_of(&found.fields[i]));
        }
    }
    free(memory);
    return good;
}

void store_look_again(dr_store *store)
{
    store->refresh_at_ns = 0;
}

static glob_t data_files(void)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/data-*.drst", scratch);
    int status = glob(pattern, 0, NULL, &found);
    assert_true(status == 0 || status == GLOB_NOMATCH);
    return found;
}

size_t n_data_files(void)
{
    glob_t found = data_files();
    size_t n = found.gl_pathc;
    globfree(&found);
    return n;
}

void data_path(char path[512])
{
    glob_t found = data_files();
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, 512, "%s", found.gl_pathv[0]);
    globfree(&found);
}

uint8_t *load_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*size + 1);
    assert_int_equal(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

void save_file(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
}
