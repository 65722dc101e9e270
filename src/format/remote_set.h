/* remote_set.h: data sets on a drapps server: the format "drapps".
 *
 * The index is fetched once, and kept in the user's cache folder for as long as the server says that it is the same.
 * What the index has is answered without a request.  Fields that are files, or ranges of files, are read by plain
 * requests, which any cache on the way understands; samples with other fields are asked of the server as a whole.
 * Ids, order, classes, fingerprint and draws are those of the set where it lies.
 *
 * Where the index has all fields of a sample but the image, ranges of images can be asked for.  The name of an image is
 * made of the set's and the sample's key, and its version is the stamp that the index has: a server that finds another
 * stamp sends no ranges.
 */
#ifndef DR_FORMAT_REMOTE_SET_H
#define DR_FORMAT_REMOTE_SET_H

#include "format/remote_client.h"

/* The client of the set; NULL: the set is not on a server. */
dr__remote_client *dr__remote_set_client(const dr_dataset *set);

/* Bytes of a sample as it is stored; 0: not known beforehand. */
uint64_t dr__remote_set_bytes(const dr_dataset *set, uint64_t id);

/* Whether ranges of the image of a sample can be asked for, and the name and version of its notes. */
bool dr__remote_set_names(const dr_dataset *set, uint64_t id, uint64_t *name, uint64_t *version);

/* Fills in a record with the fields of the index, and with what stands for the image.  As after a read with a ranger.
 */
dr_status dr__remote_set_stand_in(const dr_dataset *set, uint64_t id, const uint8_t *head, size_t size,
                                  dr__record *record, dr_error *err);

/* Says of a record, which has a sample of the set as it is stored, what a read with a ranger would say of it. */
void dr__remote_set_say(const dr_dataset *set, uint64_t id, dr__record *record);

/* The server sends no ranges: nothing of the above works any more. */
void dr__remote_set_no_ranges(const dr_dataset *set);

#endif
