/* cell_table.h: rows and named columns of texts and numbers, as lists give them.
 *
 * Cells arrive as texts.  When all are there, a column of whole numbers becomes int64, one of numbers float64, one of
 * lists of numbers stays JSON text of a known form (ragged.h), and anything else stays text.  A cell that is missing is
 * an empty text, NaN among numbers, an empty list among lists.
 */
#ifndef DR_FORMAT_CELL_TABLE_H
#define DR_FORMAT_CELL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/names.h"
#include "format/ragged.h"

enum { DR__MAX_COLUMNS = 1024, DR__CELL_BYTES = 5 }; /* memory of an empty cell */

typedef enum dr__cell_kind {
    DR__CELL_EMPTY,
    DR__CELL_INT,
    DR__CELL_REAL,
    DR__CELL_TEXT,
    DR__CELL_LIST, /* a JSON array */
} dr__cell_kind;

typedef struct dr__column {
    char name[64];
    dr__names cells;
    unsigned kinds;     /* set of 1 << dr__cell_kind that occurred */
    dr__cell_kind type; /* after dr__table_finish: INT, REAL, TEXT or LIST */
    dr__ragged form;    /* with LIST */
    int64_t *ints;      /* with INT */
    double *reals;      /* with REAL */
} dr__column;

typedef struct dr__table {
    const char *name; /* of the file, for messages; borrowed */
    dr__column *columns;
    int n_columns;
    size_t columns_cap;
    size_t n_rows;
    uint64_t line;      /* where the reader is, from 1 */
    uint64_t max_cells; /* a row that makes them more is an error; 0: no limit */
} dr__table;

/* An empty table; `name`, of the file, is borrowed. */
void dr__table_init(dr__table *table, const char *name);
void dr__table_free(dr__table *table);

/* The column with that name, or -1.  `hint`: the column to look at first. */
int dr__table_find(const dr__table *table, const char *name, size_t len);
int dr__table_find_near(const dr__table *table, int hint, const char *name, size_t len);

/* Adds a column; the rows so far have no cell in it.  *column is its number. */
dr_status dr__table_add_column(dr__table *table, const char *name, size_t len, int *column, dr_error *err);

/* The next cell of a column in the row that is being read.  Two in one row are an error. */
dr_status dr__table_cell(dr__table *table, int column, const char *text, size_t len, dr__cell_kind kind, dr_error *err);

/* Ends a row: columns without a cell get an empty one. */
dr_status dr__table_end_row(dr__table *table, dr_error *err);

/* Gives the columns their types and drops the texts of those with numbers, but not that of column `keep` (-1: none). */
dr_status dr__table_finish(dr__table *table, int keep, dr_error *err);

/* What a text is, by itself: "12" an int, "1.5" or "nan" a real, "" empty. */
dr__cell_kind dr__cell_kind_of(const char *text, size_t len);

/* The readers: each fills a table from the bytes of a file. */
dr_status dr__csv_read(const void *data, size_t size, char separator, dr__table *table, dr_error *err);
dr_status dr__jsonl_read(const void *data, size_t size, dr__table *table, dr_error *err);
dr_status dr__lines_read(const void *data, size_t size, dr__table *table, dr_error *err);

#endif
