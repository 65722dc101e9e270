/* s3_xml.h: what S3 answers in XML: listings and errors. */
#ifndef DR_SOURCE_S3_XML_H
#define DR_SOURCE_S3_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/* One object or common prefix of a listing, borrowed for the call. */
typedef struct dr__s3_entry {
    const char *key; /* or prefix, with its slash */
    const char *etag;
    uint64_t size; /* UINT64_MAX: not known */
    bool is_prefix;
} dr__s3_entry;

typedef struct dr__s3_page {
    dr_status (*take)(void *user, const dr__s3_entry *entry, dr_error *err);
    void *user;
    dr__text next;  /* the token of the next page; the caller frees its text */
    bool truncated; /* there is one */
} dr__s3_page;

/* Parses an answer to ListObjectsV2 and hands over its entries.  What is unknown is passed over; DR_ERR_FORMAT where it
 * is no listing or ends early. */
dr_status dr__s3_list_parse(const char *text, size_t size, dr__s3_page *page, dr_error *err);

/* The text of the first element of this name anywhere; false: there is none, or it does not fit. */
bool dr__s3_element(const char *text, size_t size, const char *name, char *out, size_t room);

#endif
