/* ragged.h: lists of numbers as JSON text without spaces: "[1,2.5]", or lists of equally long ones: "[[1,2],[3,4]]". */
#ifndef DR_FORMAT_RAGGED_H
#define DR_FORMAT_RAGGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

/* What the lists of a column have in common. */
typedef struct dr__ragged {
    int64_t width; /* numbers of each inner list; 0: plain lists; -1: so far all were empty */
    bool whole;    /* every number is a whole one */
} dr__ragged;

/* The form of no list yet. */
static inline dr__ragged dr__ragged_any(void)
{
    return (dr__ragged){ -1, true };
}

/* Takes one more list into account; an empty text is an empty list.  False: it is of another form, or none. */
bool dr__ragged_note(dr__ragged *form, const char *text, size_t len);

/* How many numbers a list that was noted has. */
size_t dr__ragged_numbers(const char *text, size_t len);

/* All its numbers one after the other, as int64, float32 or float64. */
void dr__ragged_read(const char *text, size_t len, dr_dtype dtype, void *out);

#endif
