/* jsonl.c: one JSON object a line.  Members become columns; a list or object inside stays as its JSON text, of which
 * the table may make numbers. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "format/cell_table.h"

static dr_status nested(dr__table *t, int column, const json_t *value, dr_error *err)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return dr__fail(err, DR_ERR_NOMEM, "%s:%llu: out of memory", t->name, (unsigned long long)t->line);
    dr_status status =
        dr__table_cell(t, column, text, strlen(text), json_is_array(value) ? DR__CELL_LIST : DR__CELL_TEXT, err);
    free(text);
    return status;
}

static dr_status member(dr__table *t, int column, const json_t *value, dr_error *err)
{
    char number[40];
    switch (json_typeof(value)) {
    case JSON_STRING:
        return dr__table_cell(t, column, json_string_value(value), json_string_length(value), DR__CELL_TEXT, err);
    case JSON_INTEGER:
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return dr__table_cell(t, column, number, strlen(number), DR__CELL_INT, err);
    case JSON_REAL: { /* by way of JSON, whose point does not depend on the locale */
        size_t n = json_dumpb(value, number, sizeof number, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        return dr__table_cell(t, column, number, n < sizeof number ? n : 0, DR__CELL_REAL, err);
    }
    case JSON_TRUE:
    case JSON_FALSE:
        return dr__table_cell(t, column, json_is_true(value) ? "1" : "0", 1, DR__CELL_INT, err);
    case JSON_NULL:
        return dr__table_cell(t, column, "", 0, DR__CELL_EMPTY, err);
    default:
        return nested(t, column, value, err);
    }
}

static dr_status row(dr__table *t, json_t *object, dr_error *err)
{
    const char *name;
    json_t *value;
    int column = -1;
    json_object_foreach(object, name, value)
    {
        column = dr__table_find_near(t, column + 1, name, strlen(name)); /* lines mostly have the same order */
        if (column < 0)
            DR_TRY(dr__table_add_column(t, name, strlen(name), &column, err));
        DR_TRY(member(t, column, value, err));
    }
    return dr__table_end_row(t, err);
}

static bool is_blank(const char *line, size_t len)
{
    while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    return !len;
}

dr_status dr__jsonl_read(const void *data, size_t size, dr__table *table, dr_error *err)
{
    dr_cursor c = dr__cursor(data, size, table->name);
    const char *line;
    size_t len;
    while (dr__cursor_line(&c, &line, &len)) {
        table->line++;
        if (is_blank(line, len))
            continue;
        json_error_t why;
        json_t *object = json_loadb(line, len, 0, &why);
        if (!object || !json_is_object(object)) {
            dr_status status = dr__fail(err, DR_ERR_FORMAT, "%s:%llu: not a JSON object: %s", table->name,
                                        (unsigned long long)table->line, object ? "another value" : why.text);
            json_decref(object);
            return status;
        }
        dr_status status = row(table, object, err);
        json_decref(object);
        DR_TRY(status);
    }
    return DR_OK;
}
