/* sensors.c: the table of sensors as JSON, and their names. */
#include <drapps/monitor.h>

#include "base/table_text.h"

static const struct {
    const char *name, *unit, *full, *doc;
} rows[] = {
#define ROW(id, name, unit, full, doc) { name, unit, full, doc },
    DR_SENSOR_MAP(ROW)
#undef ROW
};

_Static_assert(DR_N_SENSORS <= 64, "a sensor is a bit of dr_snapshot.present");

static json_t *list_rows(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_SENSORS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", rows[i].name, "unit", rows[i].unit,
                                              "full", rows[i].full, "doc", rows[i].doc));
    return list;
}

const char *dr_sensors_json(void)
{
    static dr__table_text text;
    return dr__table_text_of(&text, list_rows);
}

const char *dr_sensor_name(int sensor)
{
    return sensor >= 0 && sensor < DR_N_SENSORS ? rows[sensor].name : NULL;
}
