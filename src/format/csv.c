/* csv.c: comma-separated values with a header line, quoted as RFC 4180 says: a cell in quotes may hold separators,
 * line ends, and quotes written twice. */
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/grow.h"
#include "format/cell_table.h"

struct reader {
    dr_cursor c;
    char separator;
    dr__table *table;
    char *cell; /* the cell being read, unquoted */
    size_t len, cap;
};

static dr_status add_byte(struct reader *r, char byte, dr_error *err)
{
    char *p = dr__grow(r->cell, &r->cap, r->len + 1, 1);
    if (!p)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", r->table->name);
    r->cell = p;
    p[r->len++] = byte;
    return DR_OK;
}

static dr_status quoted(struct reader *r, dr_error *err)
{
    uint64_t start = r->table->line;
    for (;;) {
        int b = dr__cursor_peek(&r->c);
        if (b < 0)
            return dr__fail(err, DR_ERR_FORMAT, "%s:%llu: a quoted cell does not end", r->table->name,
                            (unsigned long long)start);
        r->c.at++;
        if (b == '"' && dr__cursor_peek(&r->c) != '"')
            return DR_OK;
        if (b == '"')
            r->c.at++;
        r->table->line += b == '\n';
        DR_TRY(add_byte(r, (char)b, err));
    }
}

/* Reads one cell and what ends it: the separator, '\n', or -1 for the end. */
static dr_status next_cell(struct reader *r, int *end, dr_error *err)
{
    r->len = 0;
    if (dr__cursor_peek(&r->c) == '"') {
        r->c.at++;
        DR_TRY(quoted(r, err));
    }
    for (;;) {
        int b = dr__cursor_peek(&r->c);
        if (b >= 0)
            r->c.at++;
        if (b == '\r' && dr__cursor_peek(&r->c) == '\n')
            continue;
        if (b < 0 || b == '\n' || b == r->separator) {
            *end = b == r->separator ? r->separator : b;
            return DR_OK;
        }
        DR_TRY(add_byte(r, (char)b, err));
    }
}

static dr_status header(struct reader *r, dr_error *err)
{
    int end, column;
    r->table->line = 1;
    do {
        DR_TRY(next_cell(r, &end, err));
        DR_TRY(dr__table_add_column(r->table, r->cell ? r->cell : "", r->len, &column, err));
    } while (end == r->separator);
    return DR_OK;
}

static dr_status row(struct reader *r, dr_error *err)
{
    int end, column = 0;
    uint64_t line = r->table->line;
    do {
        DR_TRY(next_cell(r, &end, err));
        if (column == 0 && end != r->separator && !r->len)
            return DR_OK; /* an empty line */
        if (column == r->table->n_columns)
            return dr__fail(err, DR_ERR_FORMAT, "%s:%llu: more than the header's %d cells", r->table->name,
                            (unsigned long long)line, r->table->n_columns);
        const char *text = r->cell ? r->cell : "";
        DR_TRY(dr__table_cell(r->table, column++, text, r->len, dr__cell_kind_of(text, r->len), err));
    } while (end == r->separator);
    if (column != r->table->n_columns)
        return dr__fail(err, DR_ERR_FORMAT, "%s:%llu: %d cells; the header has %d", r->table->name,
                        (unsigned long long)line, column, r->table->n_columns);
    return dr__table_end_row(r->table, err);
}

dr_status dr__csv_read(const void *data, size_t size, char separator, dr__table *table, dr_error *err)
{
    struct reader r = { .c = dr__cursor(data, size, table->name), .separator = separator, .table = table };
    dr_status status = header(&r, err);
    while (status == DR_OK && dr__cursor_left(&r.c)) {
        table->line++;
        status = row(&r, err);
    }
    dr__free(r.cell);
    return status;
}
