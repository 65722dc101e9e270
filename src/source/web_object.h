/* web_object.h: what sources over HTTP have in common: reading an object, its facts, and remembering these. */
#ifndef DR_SOURCE_WEB_OBJECT_H
#define DR_SOURCE_WEB_OBJECT_H

#include <pthread.h>

#include "source/source.h"
#include "source/transfer.h"

/* How a server is talked to.  All texts are owned; NULL: none. */
typedef struct dr__web_access {
    uint64_t timeout_ns;
    char *token, *user, *password; /* see dr__transfer_request */
    char *sigv4;
    char *ca_file;
    char *headers[3]; /* NULL-ended */
    bool direct;
    /* Puts what the server said in the body of a failed answer into words; NULL: nobody can. */
    dr_status (*explain)(const dr__transfer_reply *reply, const char *name, dr_status status, dr_error *err);
} dr__web_access;

void dr__web_access_free(dr__web_access *access);

/* Reads a range of an object, or all of it (offset and size 0), into a target.  etag: the object must have it, unless
 * it is "".  name: for messages; NULL: the URL. */
dr_status dr__web_read(const dr__web_access *access, const char *url, const char *name, const char *etag,
                       uint64_t offset, uint64_t size, dr__source_target *target, dr__transfer_reply *reply,
                       dr_error *err);

/* Asks for the header of an object alone. */
dr_status dr__web_head(const dr__web_access *access, const char *url, const char *name, dr__transfer_reply *reply,
                       dr_error *err);

/* Reads a text that ends with a 0, of at most `most` bytes; the caller frees it. */
dr_status dr__web_text(const dr__web_access *access, const char *url, const char *name, size_t most, char **text,
                       size_t *size, dr__transfer_reply *reply, dr_error *err);

/* The facts of an object by an answer about it.  The version is a hash of its entity tag; without one, of its size and
 * time. */
dr__source_facts dr__web_facts(const dr__transfer_reply *reply);
uint64_t dr__web_version(const char *etag);

/* An open object.  Takes the URL, name and access with success. */
dr_status dr__web_source_new(dr__web_access *access, char *url, char *name, dr__source **out, dr_error *err);
dr_status dr__web_source_size(dr__source *source, uint64_t *size, dr_error *err);
dr_status dr__web_source_read_at(dr__source *source, void *buf, size_t size, uint64_t offset, size_t *got,
                                 dr_error *err);
void dr__web_source_close(dr__source *source);

/* The facts of objects that were met, by a hash of their paths.  A data set does not change while it is open, so what
 * was learnt when an object was read or listed saves a request for each sample that is kept in a cache. */
typedef struct dr__web_memory {
    pthread_mutex_t lock;
    struct dr__web_known *slots;
    size_t n, n_slots;
} dr__web_memory;

void dr__web_memory_init(dr__web_memory *memory);
void dr__web_memory_put(dr__web_memory *memory, const char *path, const dr__source_facts *facts);
bool dr__web_memory_get(dr__web_memory *memory, const char *path, dr__source_facts *facts);
void dr__web_memory_free(dr__web_memory *memory);

#endif
