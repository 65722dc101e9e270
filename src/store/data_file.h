/* data_file.h: one file of a store: samples one after the other, written by one process and never changed.
 *
 *   head     "DRSTO\r\n\x1a"  u32 version  u32 zero  u64 u64 identity  zeros  u64 xxh3 of all before        64 bytes
 *   record   u32 "DRSR"  u32 head bytes  u64 u64 key  u8 fields  u8 byte codec  u16 u32 zero
 *            u64 stored bytes  u64 raw bytes  u64 xxh3 of the stored bytes
 *            fields times: u8 kind  u8 dtype  u8 layout  u8 n_dims  u32 zero  n_dims times i64
 *            zeros to a multiple of 64 less 8  u64 xxh3 of the record's head
 *            stored bytes, zeros to a multiple of 64
 *
 * Little-endian.  Raw bytes are the fields, each followed by zeros to a multiple of 64.  Reading goes from head to
 * head; one that is not whole ends the file for now: its process may be writing it, or was killed.
 */
#ifndef DR_STORE_DATA_FILE_H
#define DR_STORE_DATA_FILE_H

#include <drapps/store.h>

#include "base/error.h"

enum {
    DR__DATA_ALIGN = 64,
    DR__DATA_HEAD = 64,
    DR__DATA_NAME = 96,                                                       /* room for the name of a file */
    DR__DATA_RECORD_HEAD = 64 + DR_STORE_FIELDS * (8 + 8 * DR_MAX_DIMS) + 64, /* the longest */
};

typedef struct dr__data_file {
    int fd; /* -1: closed */
    char name[DR__DATA_NAME];
    uint64_t scanned; /* where the next record begins that was not seen yet */
    uint64_t used_at; /* the store's: when its descriptor was last wanted, and how many want it now */
    int users;
} dr__data_file;

static inline uint64_t dr__data_round(uint64_t bytes)
{
    return (bytes + DR__DATA_ALIGN - 1) & ~(uint64_t)(DR__DATA_ALIGN - 1);
}

/* Places the fields of a sample in memory and adds them up; false: one of them has no size, or it overflows. */
bool dr__data_layout(dr_stored *sample);

/* Opens a file of that identity for reading; false: it is none, or cannot be read (with errno). */
bool dr__data_open(int folder_fd, const char *name, const dr_store_key *identity, dr__data_file *out);

/* A new file of that identity, for reading and writing.  False with errno. */
bool dr__data_create(int folder_fd, const char *name, const dr_store_key *identity, dr__data_file *out);
void dr__data_close(dr__data_file *file);

/* The record that begins at `offset`; *next: where the one after it does.  False: there is none that is whole. */
bool dr__data_read_head(const dr__data_file *file, uint64_t offset, dr_stored *out, uint64_t *next);

/* Writes a record's head, payload_sum included; returns its size. */
size_t dr__data_make_head(const dr_stored *sample, uint8_t head[DR__DATA_RECORD_HEAD]);

/* Parses a record's head from memory; *head_bytes: how long it is. */
bool dr__data_parse_head(const uint8_t *data, size_t size, dr_stored *out, size_t *head_bytes);

/* Writes one record behind the last: key, fields, codec and payload_bytes of `sample` say what it is.  False with
 * errno, and the file is as it was. */
bool dr__data_append(dr__data_file *file, dr_stored *sample, const void *payload, uint64_t *offset);

#endif
