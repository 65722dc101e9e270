/* remote_set.h: data sets on a drapps server: the format "drapps".
 *
 * The index is fetched once, and kept in the user's cache folder for as long as the server says that it is the same.
 * What the index has is answered without a request.  Fields that are files, or ranges of files, are read by plain
 * requests, which any cache on the way understands; samples with other fields are asked of the server as a whole.
 * Ids, order, classes, fingerprint and draws are those of the set where it lies.
 */
#ifndef DR_FORMAT_REMOTE_SET_H
#define DR_FORMAT_REMOTE_SET_H

#include "format/remote_client.h"

/* The client of the set; NULL: the set is not on a server. */
dr__remote_client *dr__remote_set_client(const dr_dataset *set);

/* Bytes of a sample as it is stored; 0: not known beforehand. */
uint64_t dr__remote_set_bytes(const dr_dataset *set, uint64_t id);

#endif
