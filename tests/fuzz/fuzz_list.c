/* fuzz_list.c: any bytes as a list of files; the first says which kind. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "format/cell_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dr_status read_as(uint8_t kind, const uint8_t *data, size_t size, dr__table *table, dr_error *err)
{
    switch (kind) {
    case 'c':
        return dr__csv_read(data, size, ',', table, err);
    case 't':
        return dr__csv_read(data, size, '\t', table, err);
    case 'j':
        return dr__jsonl_read(data, size, table, err);
    default:
        return dr__lines_read(data, size, table, err);
    }
}

/* Each list of numbers into memory of exactly its size. */
static void read_lists(const dr__column *c)
{
    for (size_t i = 0; c->type == DR__CELL_LIST && i < c->cells.n; i++) {
        const char *text = dr__names_get(&c->cells, i);
        size_t len = dr__names_len(&c->cells, i), n = dr__ragged_numbers(text, len);
        void *values = malloc(8 * n + 1);
        if (values)
            dr__ragged_read(text, len, c->form.whole ? DR_I64 : DR_F64, values);
        if (c->form.width > 0 && n % (size_t)c->form.width)
            abort();
        free(values);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__table table;
    dr_error err;
    if (!size)
        return 0;
    dr__table_init(&table, "fuzz");
    if (read_as(data[0], data + 1, size - 1, &table, &err) == DR_OK)
        if (dr__table_finish(&table, 0, &err) == DR_OK)
            for (int i = 0; i < table.n_columns; i++)
                read_lists(&table.columns[i]);
    dr__table_free(&table);
    return 0;
}
