/* braces.h: from "train-{000..099}.tar" or "train-*.tar" to the files it means. */
#ifndef DR_FORMAT_BRACES_H
#define DR_FORMAT_BRACES_H

#include "base/error.h"
#include "format/names.h"

/* Expands braces as a shell does, in their order: {a,b}, {000..099}, {0..10..2}; several in one text, and nested.
 * Numbers are padded with zeros where one end of the range is.  The caller frees *out, also after an error. */
dr_status dr__braces(const char *text, dr__names *out, dr_error *err);

/* Braces first, then each * ? [ pattern by the files that match, sorted.  A file with exactly this name is itself. */
dr_status dr__expand_paths(const char *text, dr__names *out, dr_error *err);

#endif
