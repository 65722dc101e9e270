/* sensors.c: the table of sensors as JSON, and their names. */
#include <jansson.h>
#include <pthread.h>

#include <drapps/monitor.h>

static const struct {
    const char *name, *unit, *full, *doc;
} rows[] = {
#define ROW(id, name, unit, full, doc) { name, unit, full, doc },
    DR_SENSOR_MAP(ROW)
#undef ROW
};

_Static_assert(DR_N_SENSORS <= 64, "a sensor is a bit of dr_snapshot.present");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *text; /* made once, kept for the life of the process */

static void make_text(void)
{
    json_t *list = json_array();
    for (int i = 0; i < DR_N_SENSORS; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", rows[i].name, "unit", rows[i].unit,
                                              "full", rows[i].full, "doc", rows[i].doc));
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
}

const char *dr_sensors_json(void)
{
    pthread_once(&once, make_text);
    return text ? text : "[]";
}

const char *dr_sensor_name(int sensor)
{
    return sensor >= 0 && sensor < DR_N_SENSORS ? rows[sensor].name : NULL;
}
