/* cell_table.c: collecting cells and giving columns their types. */
#include "format/cell_table.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/parse.h"

static dr_status no_memory(const dr__table *t, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory at line %llu", t->name, (unsigned long long)t->line);
}

void dr__table_init(dr__table *t, const char *name)
{
    *t = (dr__table){ .name = name };
}

void dr__table_free(dr__table *t)
{
    for (int i = 0; i < t->n_columns; i++) {
        dr__names_free(&t->columns[i].cells);
        dr__free(t->columns[i].ints);
        dr__free(t->columns[i].reals);
    }
    dr__free(t->columns);
    *t = (dr__table){ 0 };
}

static bool has_name(const dr__column *c, const char *name, size_t len)
{
    return strlen(c->name) == len && !memcmp(c->name, name, len);
}

int dr__table_find(const dr__table *t, const char *name, size_t len)
{
    for (int i = 0; i < t->n_columns; i++)
        if (has_name(&t->columns[i], name, len))
            return i;
    return -1;
}

int dr__table_find_near(const dr__table *t, int hint, const char *name, size_t len)
{
    if (hint < t->n_columns && has_name(&t->columns[hint], name, len))
        return hint;
    return dr__table_find(t, name, len);
}

static dr_status add_empty(dr__table *t, dr__column *c, dr_error *err)
{
    c->kinds |= 1u << DR__CELL_EMPTY;
    return dr__names_add(&c->cells, "", 0) ? DR_OK : no_memory(t, err);
}

dr_status dr__table_add_column(dr__table *t, const char *name, size_t len, int *column, dr_error *err)
{
    if (!len || len >= sizeof t->columns[0].name || memchr(name, 0, len))
        return dr__fail(err, DR_ERR_FORMAT, "%s:%llu: column name \"%.*s\" must have 1 to %zu bytes", t->name,
                        (unsigned long long)t->line, (int)(len < 80 ? len : 80), name, sizeof t->columns[0].name - 1);
    if (dr__table_find(t, name, len) >= 0)
        return dr__fail(err, DR_ERR_FORMAT, "%s:%llu: two columns \"%.*s\"", t->name, (unsigned long long)t->line,
                        (int)len, name);
    if (t->n_columns == DR__MAX_COLUMNS)
        return dr__fail(err, DR_ERR_LIMIT, "%s:%llu: more than %d columns", t->name, (unsigned long long)t->line,
                        DR__MAX_COLUMNS);
    dr__column *columns = dr__grow(t->columns, &t->columns_cap, (size_t)t->n_columns + 1, sizeof *columns);
    if (!columns)
        return no_memory(t, err);
    t->columns = columns;
    *column = t->n_columns;
    dr__column *c = &columns[t->n_columns++];
    *c = (dr__column){ 0 };
    memcpy(c->name, name, len);
    for (size_t i = 0; i < t->n_rows; i++)
        DR_TRY(add_empty(t, c, err));
    return DR_OK;
}

dr_status dr__table_cell(dr__table *t, int column, const char *text, size_t len, dr__cell_kind kind, dr_error *err)
{
    dr__column *c = &t->columns[column];
    if (c->cells.n > t->n_rows)
        return dr__fail(err, DR_ERR_FORMAT, "%s:%llu: two values for \"%s\"", t->name, (unsigned long long)t->line,
                        c->name);
    c->kinds |= 1u << kind;
    return dr__names_add(&c->cells, text, len) ? DR_OK : no_memory(t, err);
}

dr_status dr__table_end_row(dr__table *t, dr_error *err)
{
    t->n_rows++;
    if (t->max_cells && (uint64_t)t->n_rows * (uint64_t)t->n_columns > t->max_cells)
        return dr__fail(err, DR_ERR_LIMIT,
                        "%s:%llu: %d columns of %zu rows; the memory of this process allows %llu cells", t->name,
                        (unsigned long long)t->line, t->n_columns, t->n_rows, (unsigned long long)t->max_cells);
    for (int i = 0; i < t->n_columns; i++)
        if (t->columns[i].cells.n < t->n_rows)
            DR_TRY(add_empty(t, &t->columns[i], err));
    return DR_OK;
}

dr__cell_kind dr__cell_kind_of(const char *text, size_t len)
{
    int64_t i;
    double d;
    if (!len)
        return DR__CELL_EMPTY;
    if (dr__parse_i64(text, len, &i))
        return DR__CELL_INT;
    return dr__parse_f64(text, len, &d) ? DR__CELL_REAL : DR__CELL_TEXT;
}

/* Lists of numbers, all of one form? */
static bool are_lists(dr__column *c)
{
    if (!(c->kinds & 1u << DR__CELL_LIST) || c->kinds & ~(1u << DR__CELL_LIST | 1u << DR__CELL_EMPTY))
        return false;
    c->form = dr__ragged_any();
    for (size_t i = 0; i < c->cells.n; i++)
        if (!dr__ragged_note(&c->form, dr__names_get(&c->cells, i), dr__names_len(&c->cells, i)))
            return false;
    return true;
}

static dr__cell_kind type_of(dr__column *c)
{
    if (are_lists(c))
        return DR__CELL_LIST;
    if (c->kinds == 1u << DR__CELL_INT)
        return DR__CELL_INT;
    bool numbers = c->kinds & (1u << DR__CELL_INT | 1u << DR__CELL_REAL);
    return numbers && !(c->kinds & (1u << DR__CELL_TEXT | 1u << DR__CELL_LIST)) ? DR__CELL_REAL : DR__CELL_TEXT;
}

static dr_status to_numbers(dr__table *t, dr__column *c, dr_error *err)
{
    if (c->type == DR__CELL_INT)
        c->ints = dr__alloc_zero(t->n_rows, sizeof *c->ints);
    else
        c->reals = dr__alloc_zero(t->n_rows, sizeof *c->reals);
    if (!c->ints && !c->reals)
        return no_memory(t, err);
    for (size_t i = 0; i < t->n_rows; i++) {
        const char *text = dr__names_get(&c->cells, i);
        size_t len = dr__names_len(&c->cells, i);
        if (c->ints)
            dr__parse_i64(text, len, &c->ints[i]);
        else if (!dr__parse_f64(text, len, &c->reals[i]))
            c->reals[i] = NAN;
    }
    return DR_OK;
}

dr_status dr__table_finish(dr__table *t, int keep, dr_error *err)
{
    for (int i = 0; i < t->n_columns; i++) {
        dr__column *c = &t->columns[i];
        c->type = i == keep ? DR__CELL_TEXT : type_of(c);
        if (c->type == DR__CELL_INT || c->type == DR__CELL_REAL) {
            DR_TRY(to_numbers(t, c, err));
            dr__names_free(&c->cells);
        } else {
            dr__names_shrink(&c->cells);
        }
    }
    return DR_OK;
}
