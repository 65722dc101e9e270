/* remote_set.c: opens a set on a drapps server and reads its samples as they are stored. */
#include "format/remote_set.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/remote_index.h"

/* Of the file in the cache folder. */
enum { SECTION_ETAG = 1, SECTION_INDEX = 2, IDENTITY = 2300 };

struct remote {
    dr_dataset head;
    dr__remote_client *client;
    dr__remote_index index;
    bool plain; /* plain requests read all fields */
    int image;  /* the field that ranges are of, where the index has all others; -1: there is none */
    atomic_bool no_ranges;
};

/* --- memory that grows while something is received --- */

struct bytes {
    dr__source_target head;
    uint8_t *data;
    size_t size, most;
};

static uint8_t *reserve(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    struct bytes *b = (struct bytes *)target;
    (void)keep;
    if (size > b->most) {
        *status =
            dr__fail(err, DR_ERR_LIMIT, "a sample of %zu encoded bytes; the memory limit allows %zu", size, b->most);
        return NULL;
    }
    uint8_t *data = dr__realloc(b->data, size ? size : 1, 1);
    if (data) {
        b->data = data;
        b->size = size;
        return data;
    }
    *status = dr__fail(err, DR_ERR_NOMEM, "out of memory for %zu bytes", size);
    return NULL;
}

static dr_status get(dr__remote_client *client, const char *what, const char *etag, uint64_t offset, uint64_t size,
                     struct bytes *out, dr__transfer_reply *reply, dr_error *err)
{
    out->head.reserve = reserve;
    DR_TRY(dr__remote_client_get(client, what, etag, offset, size, &out->head, reply, err));
    out->size = (size_t)DR_MIN((uint64_t)out->size, reply->got);
    return DR_OK;
}

/* --- reading --- */

/* The bytes of a field that is a file or a range of one. */
static dr_status get_range(const struct remote *r, uint64_t id, int field, size_t most, struct bytes *out,
                           dr_error *err)
{
    const dr__remote_values *v = &r->index.values[field];
    const char *path = v->by_key ? dr__names_get(&r->index.keys, id) : dr__names_get(&r->index.paths, v->paths[id]);
    char what[DR__WHERE_PATH + 16];
    dr__transfer_reply reply;
    *out = (struct bytes){ .most = most };
    if (!v->by_key && !v->sizes[id]) /* a range without bytes is none for HTTP */
        return DR_OK;
    snprintf(what, sizeof what, "files/%s", path);
    const uint64_t offset = v->by_key ? 0 : v->offsets[id], size = v->by_key ? 0 : v->sizes[id];
    DR_TRY(get(r->client, what, NULL, offset, size, out, &reply, err));
    if (out->size >= size)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "%s: %s: ends before byte %llu", r->head.name, path,
                    (unsigned long long)(offset + size));
}

/* Room that the fields of a sample need beside those that are received. */
static size_t own_bytes(const struct remote *r, uint64_t id)
{
    size_t n = dr__record_overhead((size_t)r->head.n_fields);
    for (int i = 0; i < r->head.n_fields; i++)
        n += r->index.values[i].form == DR__WHERE_KEY ? dr__names_len(&r->index.keys, id) : sizeof(int64_t);
    return n;
}

static dr_status add_field(const struct remote *r, uint64_t id, int i, const struct bytes *b, dr__record *record,
                           dr_error *err)
{
    const dr__remote_values *v = &r->index.values[i];
    if (v->form == DR__WHERE_NUMBER)
        return dr__record_i64(record, v->numbers[id], err);
    if (v->form == DR__WHERE_KEY)
        return dr__record_text(record, dr__names_get(&r->index.keys, id), dr__names_len(&r->index.keys, id), err);
    uint8_t *data = dr__record_take(record, b->size);
    if (!data)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for a sample", r->head.name);
    if (b->size)
        memcpy(data, b->data, b->size);
    return dr__record_bytes(record, r->head.fields[i].desc.kind, data, b->size, err);
}

static dr_status read_plainly(const struct remote *r, uint64_t id, dr__record *record, dr_error *err)
{
    const int n = r->head.n_fields;
    struct bytes *parts = dr__alloc_zero((size_t)n, sizeof *parts);
    if (!parts)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for a sample", r->head.name);
    size_t total = own_bytes(r, id);
    const size_t most = record->max_bytes ? record->max_bytes : (size_t)1 << 32;
    dr_status status = DR_OK;
    for (int i = 0; i < n && status == DR_OK; i++)
        if (r->index.values[i].form == DR__WHERE_RANGE) {
            status = get_range(r, id, i, most, &parts[i], err);
            total += parts[i].size;
        }
    if (status == DR_OK)
        status = dr__record_reset(record, total, err);
    for (int i = 0; i < n && status == DR_OK; i++)
        status = add_field(r, id, i, &parts[i], record, err);
    for (int i = 0; i < n; i++)
        dr__free(parts[i].data);
    dr__free(parts);
    return status;
}

/* Whether a record has the fields of the set: what a server sends is not trusted. */
static dr_status check_fields(const struct remote *r, const dr__record *record, dr_error *err)
{
    bool good = record->n_fields == r->head.n_fields;
    for (int i = 0; good && i < record->n_fields; i++) {
        const dr_desc *have = &record->fields[i].desc, *want = &r->head.fields[i].desc;
        good = have->kind == want->kind && have->dtype == want->dtype && have->n_dims == want->n_dims;
        for (int k = 0; good && k < want->n_dims; k++)
            good = want->dims[k] == DR_UNKNOWN || want->dims[k] == have->dims[k];
    }
    return good ? DR_OK
                : dr__fail(err, DR_ERR_FORMAT, "%s: the server sent other fields than the set has", r->head.name);
}

static dr_status read_whole(const struct remote *r, uint64_t id, dr__record *record, dr_error *err)
{
    if (r->plain)
        return read_plainly(r, id, record, err);
    dr__remote_answer answer;
    const dr__remote_wish wish = { .id = id };
    const dr_status status = dr__remote_client_sample(r->client, &wish, record, &answer, err);
    if (answer.refused) /* no fault of the sample */
        return dr__fail(err, DR_ERR_STATE,
                        "the server sends no samples, and plain requests do not have all of this set: %s",
                        dr__remote_client_name(r->client));
    DR_TRY(status);
    return check_fields(r, record, err);
}

/* --- ranges --- */

static uint64_t name_of(const struct remote *r, uint64_t id)
{
    return XXH3_64bits_withSeed(dr__names_get(&r->index.keys, id), dr__names_len(&r->index.keys, id),
                                XXH3_64bits(r->head.name, strlen(r->head.name)));
}

bool dr__remote_set_names(const dr_dataset *set, uint64_t id, uint64_t *name, uint64_t *version)
{
    const struct remote *r = (const struct remote *)set;
    if (r->image < 0 || atomic_load_explicit(&r->no_ranges, memory_order_relaxed) || !r->index.stamps[id])
        return false;
    *name = name_of(r, id);
    *version = r->index.stamps[id];
    return true;
}

void dr__remote_set_no_ranges(const dr_dataset *set)
{
    atomic_store(&((struct remote *)set)->no_ranges, true);
}

static void say(const struct remote *r, uint64_t id, const void *data, bool stood_in, dr__record *record)
{
    record->ranged = (dr__ranged){
        .set = &r->head, .id = id, .data = data, .stood_in = stood_in, .remote = true, .gap = DR__REMOTE_GAP
    };
    record->ranged.known = dr__remote_set_names(&r->head, id, &record->ranged.name, &record->ranged.version);
}

void dr__remote_set_say(const dr_dataset *set, uint64_t id, dr__record *record)
{
    const struct remote *r = (const struct remote *)set;
    if (r->image >= 0 && r->image < record->n_fields)
        say(r, id, record->fields[r->image].data, false, record);
}

dr_status dr__remote_set_stand_in(const dr_dataset *set, uint64_t id, const uint8_t *head, size_t size,
                                  dr__record *record, dr_error *err)
{
    const struct remote *r = (const struct remote *)set;
    const struct bytes image = { .data = (uint8_t *)head, .size = size };
    DR_TRY(dr__record_reset(record, own_bytes(r, id) + size, err));
    for (int i = 0; i < set->n_fields; i++)
        DR_TRY(add_field(r, id, i, &image, record, err));
    say(r, id, record->fields[r->image].data, true, record);
    return DR_OK;
}

static dr_status read_sample(const dr_dataset *set, uint64_t id, dr__record *record, dr_error *err)
{
    const struct remote *r = (const struct remote *)set;
    dr__ranger *ranger = record->ranger;
    uint64_t name, version;
    size_t size;
    const bool may = ranger && dr__remote_set_names(set, id, &name, &version);
    const uint8_t *head = may ? ranger->stand_in(ranger, name, &size) : NULL;
    if (head)
        return dr__remote_set_stand_in(set, id, head, size, record, err);
    DR_TRY(read_whole(r, id, record, err));
    if (may)
        dr__remote_set_say(set, id, record);
    return DR_OK;
}

static dr_status read_ranges(const dr_dataset *set, uint64_t id, uint64_t version, const dr__byte_ranges *ranges,
                             uint8_t *to, dr_error *err)
{
    const struct remote *r = (const struct remote *)set;
    dr__remote_answer answer;
    dr__record record;
    const dr__remote_wish wish = { .id = id, .ranges = ranges, .stamp = version };
    if (version != r->index.stamps[id])
        return dr__fail(err, DR_ERR_STATE, "%s: sample %llu was changed", set->name, (unsigned long long)id);
    dr__record_init(&record);
    dr_status status = dr__remote_client_sample(r->client, &wish, &record, &answer, err);
    for (int i = 0; status == DR_OK && i < record.part.n; to += record.part.pieces[i++].size)
        memcpy(to, record.part.pieces[i].data, record.part.pieces[i].size);
    dr__record_free(&record);
    if (answer.refused || (answer.told && status == DR_ERR_UNSUPPORTED))
        dr__remote_set_no_ranges(set);
    return status;
}

static void key(const dr_dataset *set, uint64_t id, char *text, size_t size)
{
    snprintf(text, size, "%s", dr__names_get(&((const struct remote *)set)->index.keys, id));
}

static dr_status stamp(const dr_dataset *set, uint64_t id, dr__stamp *out, dr_error *err)
{
    out->version = out->modified = ((const struct remote *)set)->index.stamps[id];
    return out->version ? DR_OK : dr__fail(err, DR_ERR_UNSUPPORTED, "%s: samples have no stamps", set->name);
}

static dr_status file(const dr_dataset *set, uint64_t id, int field, char *text, size_t size, dr_error *err)
{
    const dr__remote_index *x = &((const struct remote *)set)->index;
    const dr__remote_values *v = &x->values[field];
    if (v->form != DR__WHERE_RANGE)
        return dr__dataset_no_file(set, field, err);
    return dr__dataset_file_is(set, v->by_key ? dr__names_get(&x->keys, id) : dr__names_get(&x->paths, v->paths[id]),
                               text, size, err);
}

static void close_remote(dr_dataset *set)
{
    struct remote *r = (struct remote *)set;
    dr__remote_client_close(&r->client);
    dr__remote_index_free(&r->index);
}

static const dr_dataset_def remote_def = {
    .read = read_sample,
    .key = key,
    .stamp = stamp,
    .read_ranges = read_ranges,
    .file = file,
    .close = close_remote,
};

dr__remote_client *dr__remote_set_client(const dr_dataset *set)
{
    return set->def == &remote_def ? ((const struct remote *)set)->client : NULL;
}

uint64_t dr__remote_set_bytes(const dr_dataset *set, uint64_t id)
{
    const dr__remote_index *x = &((const struct remote *)set)->index;
    uint64_t n = 0;
    for (int i = 0; set->def == &remote_def && i < x->n_fields; i++)
        if (x->values[i].form == DR__WHERE_RANGE)
            n += x->values[i].sizes[id];
    return n;
}

/* --- the index --- */

/* What is in the cache folder: an index, and the tag by which the server knows it. */
static uint8_t *load_kept(const char *path, size_t *size, dr_cursor *index, char *etag, size_t etag_size)
{
    dr_cursor tag;
    const char *text;
    size_t len;
    uint8_t *data = path ? dr__index_load(path, size) : NULL;
    if (data && dr__index_section(data, *size, SECTION_ETAG, &tag, NULL) == DR_OK &&
        dr__cursor_text(&tag, &text, &len, NULL) == DR_OK && len < etag_size &&
        dr__index_section(data, *size, SECTION_INDEX, index, NULL) == DR_OK) {
        memcpy(etag, text, len + 1);
        return data;
    }
    dr__free(data);
    return NULL;
}

static void keep(const char *path, const char *etag, const struct bytes *index)
{
    dr__section parts[] = { { .id = SECTION_ETAG }, { .id = SECTION_INDEX } };
    dr__put_bytes(&parts[0], etag, strlen(etag) + 1);
    dr__put_bytes(&parts[1], index->data, index->size);
    if (!parts[0].failed && !parts[1].failed)
        dr__index_save(path, false, parts, 2);
    dr__sections_free(parts, 2);
}

static dr_status fetch_index(struct remote *r, bool use_kept, dr_error *err)
{
    char identity[IDENTITY], etag[256] = "";
    dr__index_paths paths = { 0 };
    dr_cursor kept;
    size_t size;
    struct bytes fresh = { .most = SIZE_MAX };
    dr__transfer_reply reply;
    uint8_t *old = NULL;
    snprintf(identity, sizeof identity, "index of %s", r->head.name);
    if (use_kept) {
        dr__index_paths_make(&paths, NULL, identity);
        old = load_kept(paths.cached, &size, &kept, etag, sizeof etag);
    }
    dr_status status = get(r->client, "index", etag, 0, 0, &fresh, &reply, err);
    if (status == DR_ERR_NOT_FOUND)
        status = dr__fail(err, DR_ERR_NOT_FOUND, "%s: the server has no such data set", r->head.name);
    const bool same = status == DR_OK && reply.http == 304 && old;
    if (status == DR_OK)
        status = same ? dr__remote_index_decode(kept.at, dr__cursor_left(&kept), &r->index, err)
                      : dr__remote_index_decode(fresh.data, fresh.size, &r->index, err);
    if (status == DR_ERR_FORMAT)
        dr__error_prefix(err, "%s", r->head.name);
    if (status == DR_OK && !same && use_kept && paths.cached && reply.etag[0])
        keep(paths.cached, reply.etag, &fresh);
    dr__free(fresh.data);
    dr__free(old);
    dr__index_paths_free(&paths);
    return status;
}

/* --- opening --- */

/* The field of images, if it is the first one of bytes, which is the one that ranges are of, and the index has the
 * values of all others. */
static int find_image(const struct remote *r)
{
    int image = -1;
    for (int i = 0; i < r->head.n_fields; i++) {
        const dr__where_form form = r->index.values[i].form;
        if (r->head.fields[i].desc.kind == DR_KIND_BYTES && image < 0)
            image = i;
        else if (form != DR__WHERE_NUMBER && form != DR__WHERE_KEY)
            return -1;
    }
    return image >= 0 && !strcmp(r->head.fields[image].name, "image") ? image : -1;
}

static dr_status fill(struct remote *r, const char *path, const dr_read_options *options, dr_error *err)
{
    dr_dataset *head = &r->head;
    const dr__source_options source = dr__source_options_of(options);
    char identity[IDENTITY];
    DR_TRY(dr__remote_client_open(path, &source, &r->client, err));
    DR_TRY(fetch_index(r, options->use_index, err));
    const dr__remote_index *x = &r->index;
    if (x->n_places != x->n_samples)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: a set whose places are not its samples", path);
    head->n_samples = head->n_places = x->n_samples;
    head->fingerprint = x->fingerprint;
    head->content = x->content;
    r->plain = true;
    for (int i = 0; i < x->n_fields; i++) {
        DR_TRY(dr__dataset_add_field(head, x->fields[i].name, &x->fields[i].desc, err));
        r->plain = r->plain && x->values[i].form != DR__WHERE_UNKNOWN;
    }
    if (x->n_classes)
        DR_TRY(dr__dataset_set_classes(head, (const char *const *)x->classes, x->n_classes, err));
    r->image = find_image(r);
    dr__remote_client_expect(r->client, x->fingerprint);
    if (!options->use_index)
        return DR_OK;
    snprintf(identity, sizeof identity, "content of %s", path);
    head->keep_identity = dr__strdup(identity);
    return head->keep_identity ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
}

static dr_status open_remote(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    dr_dataset *set;
    DR_TRY(dr__dataset_new(sizeof(struct remote), &remote_def, "drapps", path, &set, err));
    const dr_status status = fill((struct remote *)set, path, options, err);
    if (status != DR_OK) {
        dr_dataset_unref(&set);
        return status;
    }
    *out = set;
    return DR_OK;
}

static int probe(const char *path)
{
    return !strncmp(path, "drapps://", 9) || !strncmp(path, "drapps+https://", 15) ? 100 : 0;
}

const dr_format_def dr__format_drapps = {
    .name = "drapps",
    .summary = "a data set on a drapps server",
    .uses = "drapps://host[:port]/set, or drapps+https://",
    .probe = probe,
    .open = open_remote,
};
