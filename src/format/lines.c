/* lines.c: a plain list: one path a line, and behind it, after a tab or space, a whole number as label.
 *
 * The first line decides whether the list has labels; then every line must have one.
 */
#include <string.h>

#include "base/cursor.h"
#include "base/parse.h"
#include "format/cell_table.h"

/* Where the last word begins, and what separates it: '\t', ' ' or 0 for a single word. */
static size_t last_word(const char *line, size_t len, char *separator)
{
    for (size_t i = len; i-- > 1;)
        if (line[i] == '\t' || line[i] == ' ') {
            *separator = line[i];
            return i + 1;
        }
    *separator = 0;
    return 0;
}

static dr_status first_line(dr__table *t, const char *line, size_t len, bool *labels, dr_error *err)
{
    char separator;
    int column;
    int64_t value;
    size_t word = last_word(line, len, &separator);
    /* A tab is meant as a separator; a space may be part of a name. */
    *labels = separator == '\t' || (separator && dr__parse_i64(line + word, len - word, &value));
    DR_TRY(dr__table_add_column(t, "path", 4, &column, err));
    return *labels ? dr__table_add_column(t, "label", 5, &column, err) : DR_OK;
}

static dr_status add_line(dr__table *t, const char *line, size_t len, bool labels, dr_error *err)
{
    char separator;
    int64_t value;
    if (labels) {
        size_t word = last_word(line, len, &separator);
        if (!separator || !dr__parse_i64(line + word, len - word, &value))
            return dr__fail(err, DR_ERR_FORMAT,
                            "%s:%llu: label \"%.*s\" is not a whole number (class names need CSV or JSONL)", t->name,
                            (unsigned long long)t->line, (int)(len - word < 80 ? len - word : 80), line + word);
        DR_TRY(dr__table_cell(t, 1, line + word, len - word, DR__CELL_INT, err));
        len = word;
        while (len && (line[len - 1] == '\t' || line[len - 1] == ' '))
            len--;
    }
    DR_TRY(dr__table_cell(t, 0, line, len, DR__CELL_TEXT, err));
    return dr__table_end_row(t, err);
}

dr_status dr__lines_read(const void *data, size_t size, dr__table *table, dr_error *err)
{
    dr_cursor c = dr__cursor(data, size, table->name);
    const char *line;
    size_t len;
    bool labels = false;
    while (dr__cursor_line(&c, &line, &len)) {
        table->line++;
        while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
            len--;
        if (!len)
            continue;
        if (!table->n_columns)
            DR_TRY(first_line(table, line, len, &labels, err));
        DR_TRY(add_line(table, line, len, labels, err));
    }
    return DR_OK;
}
