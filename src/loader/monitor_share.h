/* monitor_share.h: the monitor that the loaders of a process share: opened for the first, closed after the last. */
#ifndef DR_LOADER_MONITOR_SHARE_H
#define DR_LOADER_MONITOR_SHARE_H

#include <drapps/monitor.h>

/* Takes and releases a reference to the shared monitor. */
dr_status dr__monitor_share_ref(dr_monitor **out, dr_error *err);
void dr__monitor_share_unref(dr_monitor **monitor);

#endif
