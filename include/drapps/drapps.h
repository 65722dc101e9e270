/* drapps.h: the whole public API. */
#ifndef DRAPPS_DRAPPS_H
#define DRAPPS_DRAPPS_H

#include <drapps/shmpool.h>
#include <drapps/shmpool_controller.h>
#include <drapps/codec.h>
#include <drapps/data.h>
#include <drapps/dataset.h>
#include <drapps/graph.h>
#include <drapps/info.h>
#include <drapps/jpeg.h>
#include <drapps/ledger.h>
#include <drapps/live.h>
#include <drapps/loader.h>
#include <drapps/metrics.h>
#include <drapps/monitor.h>
#include <drapps/pack.h>
#include <drapps/sample.h>
#include <drapps/sched.h>
#include <drapps/serve.h>
#include <drapps/sim.h>
#include <drapps/status.h>
#include <drapps/store.h>
#include <drapps/trace.h>

#endif
