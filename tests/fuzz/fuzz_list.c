/* fuzz_list.c: any bytes as a list of files; the first says which kind. */
#include <stddef.h>
#include <stdint.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__table table;
    dr_error err;
    if (!size || dr__table_init(&table, "fuzz", &err) != DR_OK)
        return 0;
    if (read_as(data[0], data + 1, size - 1, &table, &err) == DR_OK)
        (void)dr__table_finish(&table, 0, &err);
    dr__table_free(&table);
    return 0;
}
