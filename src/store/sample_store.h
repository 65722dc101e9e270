/* sample_store.h: what the engine needs of a store besides drapps/store.h. */
#ifndef DR_STORE_SAMPLE_STORE_H
#define DR_STORE_SAMPLE_STORE_H

#include <drapps/store.h>

/* Deletes what this process has put: keeping it turned out not to pay.  Nothing more is kept. */
void dr__store_discard(dr_store *store, const char *why);

#endif
