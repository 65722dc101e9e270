/* codec_files.h: the file formats of the byte codecs. */
#ifndef DR_CODEC_CODEC_FILES_H
#define DR_CODEC_CODEC_FILES_H

#include <drapps/codec.h>

/* Bytes that grow up to a limit. */
typedef struct dr__file_out {
    uint8_t *data;
    size_t n, cap;
    size_t max; /* most bytes; of content, one more than allowed */
} dr__file_out;

/* Room for `more` bytes after the first n, up to the limit.  DR_ERR_LIMIT; DR_ERR_NOMEM. */
dr_status dr__file_room(dr__file_out *out, size_t more, dr_error *err);

/* The error of content that is larger than allowed. */
dr_status dr__file_too_large(const dr__file_out *out, dr_error *err);

/* One file format: functions of one file, and one row in codec_files.c. */
typedef struct dr__codec_file {
    const char *extension;          /* ".zst" */
    uint8_t wire_id, other_wire_id; /* of the byte codecs that it holds; other: 0 if there is none */

    bool (*is_file)(const uint8_t *data, size_t size); /* by its first bytes */
    dr_status (*compress)(const void *dict, int level, const uint8_t *data, size_t size, dr__file_out *out,
                          dr_error *err);

    /* Decompresses what is at the beginning of the bytes and says how many of them that was. */
    dr_status (*decompress)(const void *dict, const uint8_t *data, size_t size, dr__file_out *out, size_t *taken,
                            dr_error *err);
} dr__codec_file;

/* Of the files of a byte codec; NULL: it has none. */
const char *dr__codec_extension(unsigned wire_id);

#endif
