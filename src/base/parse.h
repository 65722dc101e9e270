/* parse.h: numbers from text that is not to be trusted. */
#ifndef DR_BASE_PARSE_H
#define DR_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses a decimal integer.  Whitespace around it is allowed, anything else is not.  Returns false where the text is
 * no integer or does not fit into int64; *out is then not to be used. */
bool dr__parse_i64(const char *text, size_t len, int64_t *out);

/* Parses a decimal number, "nan" or "inf", likewise.  The decimal separator is a point in every locale. */
bool dr__parse_f64(const char *text, size_t len, double *out);

#endif
