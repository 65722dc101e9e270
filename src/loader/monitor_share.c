/* monitor_share.c: the shared monitor and the count of its holders. */
#include "loader/monitor_share.h"

#include <stdbool.h>

#include "base/thread.h"
#include "monitor/pipeline_facts.h"

static struct {
    pthread_mutex_t lock;
    dr_monitor *monitor; /* NULL: no loader needs one */
    int shares;
    bool ready;
} share = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The parent's monitor has no thread in the child, and its references are not counted here. */
static void reset_in_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    share.lock = fresh;
    share.monitor = NULL;
    share.shares = 0;
}

dr_status dr__monitor_share_ref(dr_monitor **out, dr_error *err)
{
    pthread_mutex_lock(&share.lock);
    if (!share.ready)
        dr__fork_in_child(reset_in_child);
    share.ready = true;
    dr_status status = share.monitor ? DR_OK : dr__monitor_begin(NULL, &share.monitor, err);
    share.shares += status == DR_OK;
    *out = share.monitor;
    pthread_mutex_unlock(&share.lock);
    return status;
}

void dr__monitor_share_unref(dr_monitor **monitor)
{
    dr_monitor *ours = *monitor, *last = NULL;
    if (!ours)
        return;
    *monitor = NULL;
    pthread_mutex_lock(&share.lock);
    if (ours == share.monitor && --share.shares == 0) { /* a monitor of the parent is not counted here */
        last = share.monitor;
        share.monitor = NULL;
    }
    pthread_mutex_unlock(&share.lock);
    dr_monitor_unref(&last); /* waits for its thread */
}
