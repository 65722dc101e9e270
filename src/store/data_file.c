/* data_file.c: writing records, and reading them with distrust. */
#include "store/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/bytes/byte_codec.h"
#include "data/desc.h"
#include "index/index_file.h"
#include "source/file.h"

static const char magic[8] = { 'D', 'R', 'S', 'T', 'O', '\r', '\n', 0x1A };

enum {
    VERSION = 1,
    RECORD_MAGIC = 'D' | 'R' << 8 | 'S' << 16 | 'R' << 24,
    FIXED = 56,       /* bytes of a record's head before its fields */
    MOST_NUMBER = 32, /* of kinds and layouts, to come ones included */
};

bool dr__data_layout(dr_stored *s)
{
    size_t total = 0;
    for (int i = 0; i < s->n_fields; i++) {
        size_t bytes;
        if (!dr__desc_bytes_dense(&s->fields[i], &bytes) || bytes > SIZE_MAX - DR__DATA_ALIGN)
            return false;
        s->at[i] = total;
        if (!dr__add_size(total, (size_t)dr__data_round(bytes), &total))
            return false;
    }
    s->bytes = total;
    return true;
}

/* --- heads of files --- */

static void make_file_head(const dr_store_key *identity, uint8_t head[DR__DATA_HEAD])
{
    dr__section s = { .data = head, .cap = DR__DATA_HEAD };
    memset(head, 0, DR__DATA_HEAD);
    dr__put_bytes(&s, magic, sizeof magic);
    dr__put_u32(&s, VERSION);
    dr__put_u32(&s, 0);
    dr__put_u64(&s, identity->low);
    dr__put_u64(&s, identity->high);
    s.size = DR__DATA_HEAD - 8;
    dr__put_u64(&s, XXH3_64bits(head, DR__DATA_HEAD - 8));
}

static bool read_exactly(int fd, void *data, size_t size, uint64_t offset)
{
    size_t got;
    return !dr__file_pread(fd, data, size, offset, &got) && got == size;
}

static bool begin(const char *name, dr__data_file *out)
{
    *out = (dr__data_file){ .fd = -1, .scanned = DR__DATA_HEAD };
    errno = EINVAL;
    return (size_t)snprintf(out->name, sizeof out->name, "%s", name) < sizeof out->name;
}

bool dr__data_open(int folder_fd, const char *name, const dr_store_key *identity, dr__data_file *out)
{
    uint8_t want[DR__DATA_HEAD], have[DR__DATA_HEAD];
    struct stat st;
    if (!begin(name, out) || dr__file_open(folder_fd, NULL, name, &out->fd, &st, NULL) != DR_OK)
        return false;
    make_file_head(identity, want);
    if (read_exactly(out->fd, have, sizeof have, 0) && !memcmp(have, want, sizeof want))
        return true;
    dr__data_close(out);
    errno = EINVAL;
    return false;
}

bool dr__data_create(int folder_fd, const char *name, const dr_store_key *identity, dr__data_file *out)
{
    uint8_t head[DR__DATA_HEAD];
    make_file_head(identity, head);
    if (!begin(name, out))
        return false;
    out->fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (out->fd < 0)
        return false;
    if (dr__write_all(out->fd, head, sizeof head))
        return true;
    int code = errno;
    dr__data_close(out);
    unlinkat(folder_fd, name, 0);
    errno = code;
    return false;
}

void dr__data_close(dr__data_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* --- heads of records --- */

size_t dr__data_make_head(const dr_stored *s, uint8_t head[DR__DATA_RECORD_HEAD])
{
    dr__section out = { .data = head, .cap = DR__DATA_RECORD_HEAD };
    size_t size = FIXED;
    for (int i = 0; i < s->n_fields; i++)
        size += 8 + 8 * (size_t)s->fields[i].n_dims + (dr__is_volume(&s->fields[i]) ? sizeof s->fields[i].spacing : 0);
    size = (size_t)dr__data_round(size + 8);
    memset(head, 0, size);
    dr__put_u32(&out, (uint32_t)RECORD_MAGIC);
    dr__put_u32(&out, (uint32_t)size);
    dr__put_u64(&out, s->key.low);
    dr__put_u64(&out, s->key.high);
    dr__put_u32(&out, (uint32_t)s->n_fields | s->codec << 8);
    dr__put_u32(&out, 0);
    dr__put_u64(&out, s->payload_bytes);
    dr__put_u64(&out, s->bytes);
    dr__put_u64(&out, s->payload_sum);
    for (int i = 0; i < s->n_fields; i++) {
        const dr_desc *d = &s->fields[i];
        dr__put_u32(&out, (uint32_t)d->kind | (uint32_t)d->dtype << 8 | (uint32_t)d->layout << 16 |
                              (uint32_t)d->n_dims << 24);
        dr__put_u32(&out, 0);
        for (int k = 0; k < d->n_dims; k++)
            dr__put_u64(&out, (uint64_t)d->dims[k]);
        for (int k = 0; dr__is_volume(d) && k < 3; k++) {
            uint64_t bits;
            memcpy(&bits, &d->spacing[k], sizeof bits);
            dr__put_u64(&out, bits);
        }
    }
    out.size = size - 8;
    dr__put_u64(&out, XXH3_64bits(head, size - 8));
    return size;
}

static bool parse_desc(dr_cursor *c, dr_desc *d)
{
    uint32_t packed, zero;
    uint64_t extent;
    if (dr__cursor_u32(c, &packed, NULL) != DR_OK || dr__cursor_u32(c, &zero, NULL) != DR_OK)
        return false;
    *d = (dr_desc){ .kind = (dr_kind)(packed & 255), .dtype = (dr_dtype)(packed >> 8 & 255) };
    d->layout = (dr_layout)(packed >> 16 & 255);
    d->n_dims = (int)(packed >> 24);
    if (zero || (unsigned)d->kind >= MOST_NUMBER || (unsigned)d->layout >= MOST_NUMBER || !dr_dtype_size(d->dtype) ||
        d->n_dims > DR_MAX_DIMS)
        return false;
    for (int i = 0; i < d->n_dims; i++) {
        if (dr__cursor_u64(c, &extent, NULL) != DR_OK || extent > INT64_MAX)
            return false;
        d->dims[i] = (int64_t)extent;
    }
    for (int i = 0; dr__is_volume(d) && i < 3; i++) { /* a size after resampling may depend on it */
        if (dr__cursor_u64(c, &extent, NULL) != DR_OK)
            return false;
        memcpy(&d->spacing[i], &extent, sizeof extent);
    }
    return true;
}

static bool parse_numbers(dr_cursor *c, dr_stored *s, uint64_t *raw_bytes)
{
    uint32_t packed, zero;
    bool there = dr__cursor_u64(c, &s->key.low, NULL) == DR_OK && dr__cursor_u64(c, &s->key.high, NULL) == DR_OK &&
                 dr__cursor_u32(c, &packed, NULL) == DR_OK && dr__cursor_u32(c, &zero, NULL) == DR_OK &&
                 dr__cursor_u64(c, &s->payload_bytes, NULL) == DR_OK && dr__cursor_u64(c, raw_bytes, NULL) == DR_OK &&
                 dr__cursor_u64(c, &s->payload_sum, NULL) == DR_OK;
    if (!there || zero || packed >> 16)
        return false;
    s->n_fields = (int)(packed & 255);
    s->codec = packed >> 8;
    return s->n_fields <= DR_STORE_FIELDS;
}

static bool sizes_agree(const dr_stored *s, uint64_t raw_bytes)
{
    if (s->bytes != raw_bytes || s->payload_bytes > INT64_MAX / 2)
        return false;
    if (s->codec == DR__BYTES_NONE)
        return s->payload_bytes == raw_bytes;
    if (s->codec > DR__BYTES_LAST)
        return false;
    /* A codec that this build is without makes the sample unreadable, not the records behind it. */
    return raw_bytes / dr__byte_codec_ratio(s->codec) <= s->payload_bytes;
}

bool dr__data_parse_head(const uint8_t *data, size_t size, dr_stored *out, size_t *head_bytes)
{
    dr_cursor c = dr__cursor(data, size, "store"), end;
    uint32_t tag, length;
    uint64_t sum, raw_bytes;
    *out = (dr_stored){ 0 };
    if (dr__cursor_u32(&c, &tag, NULL) != DR_OK || tag != (uint32_t)RECORD_MAGIC ||
        dr__cursor_u32(&c, &length, NULL) != DR_OK)
        return false;
    if (length < FIXED + 8 || length > size || length > DR__DATA_RECORD_HEAD || length % DR__DATA_ALIGN)
        return false;
    end = dr__cursor(data + length - 8, 8, "store");
    if (dr__cursor_u64(&end, &sum, NULL) != DR_OK || sum != XXH3_64bits(data, length - 8))
        return false;
    c.end = data + length - 8;
    if (!parse_numbers(&c, out, &raw_bytes))
        return false;
    for (int i = 0; i < out->n_fields; i++)
        if (!parse_desc(&c, &out->fields[i]))
            return false;
    *head_bytes = length;
    return dr__data_layout(out) && sizes_agree(out, raw_bytes);
}

bool dr__data_read_head(const dr__data_file *f, uint64_t offset, dr_stored *out, uint64_t *next)
{
    uint8_t head[DR__DATA_RECORD_HEAD];
    size_t got, length;
    struct stat st;
    if (dr__file_pread(f->fd, head, sizeof head, offset, &got) || !dr__data_parse_head(head, got, out, &length))
        return false;
    out->record_at = offset;
    out->payload_at = offset + length;
    *next = out->payload_at + dr__data_round(out->payload_bytes);
    /* The head may be there before the rest is. */
    return !fstat(f->fd, &st) && st.st_size >= 0 && *next <= (uint64_t)st.st_size;
}

/* --- writing --- */

static bool write_parts(int fd, struct iovec *parts, int n, uint64_t offset)
{
    while (n) {
        ssize_t done = pwritev(fd, parts, n, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            errno = done ? errno : ENOSPC;
            return false;
        }
        offset += (uint64_t)done;
        for (; n && (size_t)done >= parts->iov_len; n--, parts++)
            done -= (ssize_t)parts->iov_len;
        if (n) {
            parts->iov_base = (uint8_t *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return true;
}

bool dr__data_append(dr__data_file *f, dr_stored *s, const void *payload, uint64_t *offset)
{
    uint8_t head[DR__DATA_RECORD_HEAD], zeros[DR__DATA_ALIGN] = { 0 };
    s->payload_sum = XXH3_64bits(payload, s->payload_bytes);
    size_t length = dr__data_make_head(s, head), tail = (size_t)(dr__data_round(s->payload_bytes) - s->payload_bytes);
    struct iovec parts[] = { { head, length }, { (void *)payload, s->payload_bytes }, { zeros, tail } };
    if (!write_parts(f->fd, parts, DR_COUNT(parts), f->scanned)) {
        int code = errno;
        if (ftruncate(f->fd, (off_t)f->scanned))
            f->scanned = UINT64_MAX / 2; /* no more comes after what is not whole */
        errno = code;
        return false;
    }
    *offset = f->scanned;
    s->payload_at = f->scanned + length;
    f->scanned = s->payload_at + dr__data_round(s->payload_bytes);
    return true;
}
