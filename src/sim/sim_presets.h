/* sim_presets.h: the tables of machines, workloads, models and scenarios. */
#ifndef DR_SIM_PRESETS_H
#define DR_SIM_PRESETS_H

#include "sim/disturb.h"
#include "sim/sim_fields.h"

/* A machine, a workload or a model: fields as text. */
typedef struct dr__sim_preset {
    const char *name, *doc, *set;
} dr__sim_preset;

/* A field that an instance of a scenario draws. */
typedef struct dr__sim_draw {
    const char *field; /* NULL: end of the list */
    double low, high;
    int log;         /* on a logarithmic scale, low > 0 */
    const char *per; /* times that field; NULL: as it is */
} dr__sim_draw;

enum { DR__MAX_DRAWS = 10, DR__MAX_DISTURBS = 4 };

typedef struct dr__sim_scenario {
    const char *name, *doc, *set, *weights;
    int varied;                       /* draws load and training around the preset, too (dr__sim_common) */
    dr__sim_draw draw[DR__MAX_DRAWS]; /* ends at field NULL */
    int n_disturbs;
    dr__disturb_row disturb[DR__MAX_DISTURBS];
} dr__sim_scenario;

/* Lists end with a name of NULL. */
extern const dr__sim_preset dr__sim_machines[], dr__sim_workloads[], dr__sim_models[];
extern const dr__sim_scenario dr__sim_scenarios[];
extern const dr__sim_draw dr__sim_common[], dr__sim_any_machine[]; /* domain randomisation */

/* The row of a name; NULL text: the first.  Fails with the names that there are; `kind` is a word for that text. */
dr_status dr__sim_preset_find(const dr__sim_preset *rows, const char *kind, const char *name,
                              const dr__sim_preset **out, dr_error *err);
dr_status dr__sim_scenario_find(const char *name, const dr__sim_scenario **out, dr_error *err);

#endif
