/* monitor_share.h: the monitor that the loaders of a process share: opened for the first, closed after the last. */
#ifndef DR_LOADER_MONITOR_SHARE_H
#define DR_LOADER_MONITOR_SHARE_H

#include <drapps/monitor.h>

/* A share of it, to be given back. */
dr_status dr__monitor_share_take(dr_monitor **out, dr_error *err);
void dr__monitor_share_give(dr_monitor **monitor);

#endif
