/* gate.h: a place where threads wait until a test lets them go on, so that what the others do is decided by the code
 * alone and not by time.  Limits of time only keep a failing test from hanging.
 */
#ifndef DR_TESTS_GATE_H
#define DR_TESTS_GATE_H

#include <pthread.h>
#include <stdbool.h>

enum { PATIENCE_MS = 20000 };

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
    int inside; /* threads that wait at it */
} gate;

#define OPEN_GATE                                                                                                      \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, true, 0                                                   \
    }

void pass_gate(gate *g);
void set_gate(gate *g, bool open);
int inside(gate *g);
void wait_inside(gate *g, int n); /* fails after PATIENCE_MS */

#endif
