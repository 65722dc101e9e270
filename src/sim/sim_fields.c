/* sim_fields.c: the table of fields, and texts that set them. */
#include "sim/sim_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"

#define MACHINE "machine"
#define LOAD "workload"
#define TRAINING "training"
#define RUN "run"

const dr__sim_field_row dr__sim_field_rows[] = {
#define ROW(name, group, unit, least, most, standard, doc)                                                             \
    { #name, group, unit, doc, least, most, standard, offsetof(dr__sim_fields, name) },
    DR__SIM_FIELD_MAP(ROW)
#undef ROW
};

void dr__sim_fields_standard(dr__sim_fields *f)
{
    for (size_t i = 0; i < DR__SIM_N_FIELDS; i++)
        *dr__sim_field(f, &dr__sim_field_rows[i]) = dr__sim_field_rows[i].standard;
}

static const dr__sim_field_row *find(const char *name, size_t length)
{
    for (size_t i = 0; i < DR__SIM_N_FIELDS; i++)
        if (strlen(dr__sim_field_rows[i].name) == length && !memcmp(dr__sim_field_rows[i].name, name, length))
            return &dr__sim_field_rows[i];
    return NULL;
}

/* One "name=value"; *end is behind it. */
static dr_status set_one(dr__sim_fields *f, const char *text, const char **end, dr_error *err)
{
    const size_t all = strcspn(text, ","), length = strcspn(text, "=,");
    const dr__sim_field_row *row = find(text, length);
    if (!row)
        return dr__fail(err, DR_ERR_ARG, "simulator: no field \"%.*s\"; drapps scheduler show lists them",
                        (int)DR_MIN(length, 40), text);
    if (text[length] != '=')
        return dr__fail(err, DR_ERR_ARG, "simulator: %s needs a value: %s=%g", row->name, row->name, row->standard);
    char *after;
    const double value = strtod(text + length + 1, &after);
    if (after == text + length + 1 || after != text + all || !(value >= row->least && value <= row->most))
        return dr__fail(err, DR_ERR_ARG, "simulator: %s must be a number from %g to %g, got \"%.*s\"", row->name,
                        row->least, row->most, (int)DR_MIN(all - length - 1, 40), text + length + 1);
    *dr__sim_field(f, row) = value;
    *end = text + all;
    return DR_OK;
}

dr_status dr__sim_fields_set(dr__sim_fields *f, const char *text, dr_error *err)
{
    while (text && *text) {
        DR_TRY(set_one(f, text, &text, err));
        text += *text == ',';
    }
    return DR_OK;
}
