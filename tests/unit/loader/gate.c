/* gate.c: threads that wait for a test. */
#include "unit/loader/gate.h"

#include <unistd.h>

#include "unit/cm.h"

void pass_gate(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->inside++;
    while (!g->open)
        pthread_cond_wait(&g->opened, &g->lock);
    g->inside--;
    pthread_mutex_unlock(&g->lock);
}

void set_gate(gate *g, bool open)
{
    pthread_mutex_lock(&g->lock);
    g->open = open;
    pthread_cond_broadcast(&g->opened);
    pthread_mutex_unlock(&g->lock);
}

int inside(gate *g)
{
    pthread_mutex_lock(&g->lock);
    int n = g->inside;
    pthread_mutex_unlock(&g->lock);
    return n;
}

void wait_inside(gate *g, int n)
{
    for (int i = 0; inside(g) != n; i++) {
        if (i > PATIENCE_MS)
            fail_msg("%d threads at the gate, wanted %d", inside(g), n);
        usleep(1000);
    }
}
