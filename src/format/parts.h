/* parts.h: data sets that are made of others with the same fields: mixtures and concatenations.
 *
 * The samples of the parts are numbered through: those of the first keep their ids, those of the second follow.
 */
#ifndef DR_FORMAT_PARTS_H
#define DR_FORMAT_PARTS_H

#include "format/dataset_internal.h"

typedef struct dr__part {
    dr_dataset *set;      /* a reference */
    uint64_t first_id;    /* of its samples in the whole */
    uint64_t first_place; /* of its share in each epoch */
    uint64_t n_places;
    double rest;     /* of mixtures: what rounding down left over */
    uint16_t *field; /* field i of the whole is field field[i] of the part; NULL: the same order; owned */
} dr__part;

typedef struct dr__parts {
    dr_dataset head;
    dr__part *parts;
    int n_parts;
} dr__parts;

/* Room for n parts, which dr__parts_close frees.  Messages begin with the head's format ("mix"). */
dr_status dr__parts_begin(dr__parts *p, int n, dr_error *err);

/* Adds a part behind the others: all its places, once in an epoch.  Its fields and classes must be those of the first.
 * A set whose places change from epoch to epoch is DR_ERR_UNSUPPORTED. */
dr_status dr__parts_add(dr__parts *p, dr_dataset *set, dr_error *err);

/* After the last part: classes, and where is kept what is learnt of the content. */
dr_status dr__parts_finish(dr__parts *p, dr_error *err);

/* The part that a place of an epoch belongs to. */
int dr__parts_at(const dr__parts *p, uint64_t place);

/* For dr_dataset_def: they forward to the part that has the sample. */
dr_status dr__parts_read(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err);
void dr__parts_key(const dr_dataset *set, uint64_t id, char *text, size_t size);
dr_status dr__parts_stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err);
dr_status dr__parts_file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err);
void dr__parts_close(dr_dataset *set);

#endif
