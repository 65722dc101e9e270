/* decisions.c: names of what limits a pipeline. */
#include <drapps/sched.h>

static const char *const names[] = {
#define ROW(id, name, doc) name,
    DR_BOUND_MAP(ROW)
#undef ROW
};

const char *dr_bound_name(int bound)
{
    return bound >= 0 && bound < DR_N_BOUNDS ? names[bound] : NULL;
}
