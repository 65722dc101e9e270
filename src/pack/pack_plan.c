/* pack_plan.c: what a packing does, decided and written down before the first sample. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/image/seek_store.h"
#include "data/desc.h"
#include "pack/pack_internal.h"
#include "pack/pack_keys.h"
#include "pack/source_marks.h"

enum { LOOK_AT = 32, SEEK_MEMORY = 256 << 20, MAX_PATH = 8192, LOCK_TRIES = 8 };

/* --- what is asked for --- */

static dr_status check_options(dr_pack *p, const dr_pack_options *o, dr_error *err)
{
    const char *name = o->name ? o->name : "";
    p->o = *o;
    p->o.name = NULL;
    p->o.graph = NULL;
    if (!*name || *name == '.' || strlen(name) >= sizeof p->name || strpbrk(name, "/\\*?[]{}"))
        return dr__fail(err, DR_ERR_ARG, "name must be the beginning of a file's name, got \"%.60s\"", name);
    memcpy(p->name, name, strlen(name) + 1);
    if (!o->shard_bytes)
        return dr__fail(err, DR_ERR_ARG, "shard_bytes must be above 0");
    if (o->workers < 0 || o->workers > DR__PACK_WORKERS)
        return dr__fail(err, DR_ERR_ARG, "workers must be 0 to %d, got %d", DR__PACK_WORKERS, o->workers);
    return DR_OK;
}

/* Ids of the packed set are those of the source only where place i is sample i. */
static dr_status check_places(const dr_dataset *set, dr_error *err)
{
    if (!set->n_samples)
        return dr__fail(err, DR_ERR_ARG, "%s: has no samples", set->name);
    bool plain = set->n_places == set->n_samples && (!set->def->place || set->def->fixed_places);
    for (uint64_t i = 0; plain && set->def->place && i < set->n_places; i++) {
        const dr__sample_ref ref = set->def->place(set, 0, 0, i);
        plain = ref.id == i && !ref.occurrence;
    }
    if (plain)
        return DR_OK;
    return dr__fail(err, DR_ERR_UNSUPPORTED,
                    "%s: a selection or a mixture, whose samples have the ids of what they were taken from; pack that",
                    set->name);
}

/* --- fields --- */

static dr__stored form_of(const dr__field *f)
{
    if (f->desc.kind == DR_KIND_TEXT && !strcmp(f->name, "key"))
        return DR__STORED_KEY;
    if (f->desc.kind == DR_KIND_BYTES || f->desc.kind == DR_KIND_TEXT)
        return DR__STORED_FILE;
    if (!strcmp(f->name, "label") && f->desc.kind == DR_KIND_ARRAY && f->desc.dtype == DR_I64 && !f->desc.n_dims)
        return DR__STORED_CLS;
    return DR__STORED_NPY;
}

static bool is_taken(const dr__manifest *m, const char *member)
{
    for (int i = 0; i < m->n_fields; i++)
        if (!strcmp(m->fields[i].member, member))
            return true;
    return false;
}

static dr_status take_fields(dr__manifest *m, const dr__field *fields, int n, dr_error *err)
{
    m->fields = dr__alloc_zero((size_t)n, sizeof *m->fields);
    if (!m->fields)
        return dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    for (int i = 0; i < n; i++) {
        dr__set_field *f = &m->fields[i];
        f->field = fields[i];
        f->field.desc.device = (dr_device){ 0 };
        f->stored = form_of(&fields[i]);
        dr__member_name(fields[i].name, i, f->member);
        if (is_taken(m, f->member))
            snprintf(f->member, sizeof f->member, "f%d", i);
        m->n_fields = i + 1;
    }
    return DR_OK;
}

static dr_status take_classes(dr__manifest *m, const dr_dataset *set, dr_error *err)
{
    m->classes = dr__alloc_zero(set->n_classes ? set->n_classes : 1, sizeof *m->classes);
    for (size_t i = 0; m->classes && i < set->n_classes; i++) {
        m->classes[i] = dr__strdup(set->classes[i]);
        if (!m->classes[i])
            return dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
        m->n_classes = i + 1;
    }
    return m->classes ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
}

/* --- ops --- */

/* All names that can be seen after the last node, with commas: whatever comes later may want any of them. */
static char *visible_names(const dr__program *p)
{
    dr__text t = { 0 };
    for (int v = 0; v < p->n_values; v++) {
        if (dr__program_find_value(p, p->names[v]) != v)
            continue;
        if (t.n)
            dr__text_say(&t, ",");
        dr__text_say(&t, p->names[v]);
    }
    if (t.failed) {
        dr__free(t.text);
        return NULL;
    }
    return t.text;
}

static dr_status check_exact(const dr__program *p, int n, dr_error *err)
{
    for (int i = 0; i < n; i++) {
        const dr_op_def *def = p->graph->nodes[i].op.def;
        if (def->flags & (DR_OP_RANDOM | DR_OP_INEXACT | DR_OP_BATCH))
            return dr__fail(err, DR_ERR_ARG, "pack: %s %s; only ops before it can be run once for all epochs",
                            def->name,
                            def->flags & DR_OP_RANDOM    ? "draws"
                            : def->flags & DR_OP_INEXACT ? "is not exact"
                                                         : "works on batches");
    }
    return DR_OK;
}

/* The graph of the first n nodes, as its user wrote it. */
static dr_status first_nodes(dr_graph *graph, int n, char **json, dr_error *err)
{
    const char *text;
    DR_TRY(dr_graph_json(graph, &text, err));
    json_t *whole = json_loads(text, 0, NULL), *nodes = json_object_get(whole, "nodes");
    while (json_array_size(nodes) > (size_t)n)
        json_array_remove(nodes, json_array_size(nodes) - 1);
    *json = whole ? dr__canonical(whole) : NULL;
    json_decref(whole);
    return *json ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
}

/* Compiles the graph so that everything after it can be had, and cuts it. */
static dr_status cut(dr_pack *p, dr_graph *graph, int n_nodes, dr_error *err)
{
    dr__program_options o = { .layout = "NHWC", .part = true, .any_shape = true };
    dr__program *whole = NULL;
    DR_TRY(dr__program_compile(graph, p->set->fields, p->set->n_fields, &o, &whole, err));
    char *names = visible_names(whole);
    dr__program_free(&whole);
    o.outputs = names;
    dr_status status = names ? dr__program_compile(graph, p->set->fields, p->set->n_fields, &o, &whole, err)
                             : dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    if (status == DR_OK && n_nodes > 0)
        status = check_exact(whole, n_nodes, err);
    if (status == DR_OK)
        status = dr__prefix_cut(whole, p->set->fields, p->set->n_fields, n_nodes, &o, &p->prefix, err);
    dr__program_free(&whole);
    dr__free(names);
    return status;
}

/* With n_nodes below 0: stores files as they are where no op is worth running. */
static dr_status drop_ops(dr_pack *p, dr_error *err)
{
    bool grows = true;
    p->recipe.program = p->prefix.head;
    p->recipe.set = p->set;
    if (p->prefix.head)
        DR_TRY(dr__ops_only_grow(p, &grows, err));
    if (grows) {
        dr__prefix_free(&p->prefix);
        p->recipe.program = NULL;
    }
    return DR_OK;
}

static dr_status take_ops(dr_pack *p, dr_graph *graph, int n_nodes, dr_error *err)
{
    if (!graph || !n_nodes || !graph->n_nodes)
        return DR_OK;
    if (n_nodes > graph->n_nodes)
        return dr__fail(err, DR_ERR_ARG, "n_nodes must be -1 to %d, got %d", graph->n_nodes, n_nodes);
    DR_TRY(cut(p, graph, n_nodes, err));
    if (n_nodes < 0) {
        DR_TRY(drop_ops(p, err));
        if (!p->prefix.head)
            return DR_OK;
    }
    if (!p->prefix.head)
        return dr__fail(err, DR_ERR_ARG, "pack: nothing to run before storing: %s", p->prefix.why);
    p->recipe.program = p->prefix.head;
    return first_nodes(graph, p->prefix.head->graph->n_nodes, &p->m.prefix, err);
}

/* Fields that the source has in its order, then what the ops have made. */
static void order_outputs(dr_pack *p)
{
    const dr__program *head = p->prefix.head;
    bool taken[DR_STORE_FIELDS] = { false };
    int n = 0;
    for (int f = 0; f < p->set->n_fields; f++)
        for (int i = 0; i < head->n_outputs; i++)
            if (!strcmp(head->outputs[i].name, p->set->fields[f].name)) {
                p->recipe.output_of[n++] = (uint8_t)i;
                taken[i] = true;
            }
    for (int i = 0; i < head->n_outputs; i++)
        if (!taken[i])
            p->recipe.output_of[n++] = (uint8_t)i;
}

static dr_status output_fields(dr_pack *p, dr_error *err)
{
    const dr__program *head = p->prefix.head;
    dr__field *fields = dr__alloc_zero((size_t)head->n_outputs, sizeof *fields);
    if (!fields)
        return dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    order_outputs(p);
    for (int i = 0; i < head->n_outputs; i++) {
        const dr__output *output = &head->outputs[p->recipe.output_of[i]];
        snprintf(fields[i].name, sizeof fields[i].name, "%s", output->name);
        fields[i].desc = output->desc;
    }
    dr_status status = take_fields(&p->m, fields, head->n_outputs, err);
    dr__free(fields);
    return status;
}

static int first_field(const dr__manifest *m)
{
    for (int i = 0; i < m->n_fields; i++)
        if (m->fields[i].stored == DR__STORED_FILE && !strcmp(m->fields[i].field.name, "image"))
            return i;
    for (int i = 0; i < m->n_fields; i++)
        if (m->fields[i].stored == DR__STORED_FILE)
            return i;
    return -1;
}

/* --- the folder --- */

/* The lock is on a file of its own: the lock of the folder is for those who save seek points there.  A packer removes
 * its lock file in the end, so one that was just opened may be gone by the time it is locked. */
static dr_status take_lock(dr_pack *p, dr_error *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct stat s;
        p->lock_fd = openat(p->folder_fd, DR__SET_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (p->lock_fd < 0)
            return dr__fail_errno(err, DR_ERR_IO, "%s/" DR__SET_LOCK ": cannot be made", p->folder);
        bool taken = flock(p->lock_fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK; /* else locks may not be supported */
        if (!taken && (fstat(p->lock_fd, &s) || s.st_nlink > 0))
            return DR_OK;
        close(p->lock_fd);
        p->lock_fd = -1;
        if (taken)
            break;
    }
    return dr__fail(err, DR_ERR_STATE, "%s: another process is packing into it", p->folder);
}

static dr_status lock_folder(dr_pack *p, dr_error *err)
{
    if (mkdir(p->folder, 0777) && errno != EEXIST)
        return dr__fail_errno(err, errno == ENOENT ? DR_ERR_NOT_FOUND : DR_ERR_IO, "%s: cannot be made", p->folder);
    p->folder_fd = open(p->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->folder_fd < 0)
        return dr__fail_errno(err, DR_ERR_IO, "%s: cannot be opened", p->folder);
    return take_lock(p, err);
}

static bool ends_with(const char *name, const char *ending)
{
    const size_t n = strlen(name), k = strlen(ending);
    return n > k && !strcmp(name + n - k, ending);
}

/* Deletes what an interrupted run left incomplete. */
static void remove_parts(const dr_pack *p)
{
    DIR *dir = opendir(p->folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (ends_with(entry->d_name, DR__PART))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
}

static dr_status remove_journal(const dr_pack *p, dr_error *err)
{
    if (unlinkat(p->folder_fd, DR__SET_JOURNAL, 0) && errno != ENOENT)
        return dr__fail_errno(err, DR_ERR_IO, "%s/" DR__SET_JOURNAL ": cannot be deleted", p->folder);
    return dr__sync_folder(p->folder, err);
}

/* --- adding --- */

/* Fails where the fields of what is added are not those of the set, or are stored in another way. */
static dr_status check_fields(const dr_pack *p, const dr__manifest *old, dr_error *err)
{
    const dr__manifest *new = &p->m;
    if (new->n_fields != old->n_fields)
        return dr__fail(err, DR_ERR_ARG, "%s: has %d fields, %s has %d and cannot be added", p->folder, old->n_fields,
                        p->set->name, new->n_fields);
    for (int i = 0; i < new->n_fields; i++) {
        const dr__set_field *x = &new->fields[i], *y = &old->fields[i];
        if (strcmp(x->field.name, y->field.name))
            return dr__fail(err, DR_ERR_ARG, "%s: its field %d is '%s', that of %s is '%s', which cannot be added",
                            p->folder, i, y->field.name, p->set->name, x->field.name);
        if (strcmp(x->codec, y->codec))
            return dr__fail(err, DR_ERR_ARG, "%s: its field '%s' is stored by codec '%s', '%s' cannot be added",
                            p->folder, y->field.name, *y->codec ? y->codec : "none", *x->codec ? x->codec : "none");
        if (x->stored != y->stored || !dr__desc_equal(&x->field.desc, &y->field.desc))
            return dr__fail(err, DR_ERR_ARG,
                            "%s: its field '%s' has another type, shape or form than that of %s, "
                            "which cannot be added",
                            p->folder, y->field.name, p->set->name);
    }
    return DR_OK;
}

/* Fails where the classes of what is added are not those of the set: labels would mean something else. */
static dr_status check_classes(const dr_pack *p, const dr__manifest *old, dr_error *err)
{
    const dr__manifest *new = &p->m;
    if (new->n_classes != old->n_classes)
        return dr__fail(err, DR_ERR_ARG, "%s: has %zu classes, %s has %zu and cannot be added", p->folder,
                        old->n_classes, p->set->name, new->n_classes);
    for (size_t i = 0; i < new->n_classes; i++)
        if (strcmp(new->classes[i], old->classes[i]))
            return dr__fail(err, DR_ERR_ARG, "%s: its class %zu is '%s', that of %s is '%s', which cannot be added",
                            p->folder, i, old->classes[i], p->set->name, new->classes[i]);
    return DR_OK;
}

static dr_status check_added(const dr_pack *p, const dr__manifest *old, dr_error *err)
{
    DR_TRY(check_fields(p, old, err));
    DR_TRY(check_classes(p, old, err));
    if (!p->m.prefix == !old->prefix && (!p->m.prefix || !strcmp(p->m.prefix, old->prefix)))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "%s: was packed with other ops: %s", p->folder,
                    old->prefix ? old->prefix : "none");
}

/* Takes over the shards and sources of the set that is there. */
static dr_status add_present(dr_pack *p, dr_error *err)
{
    dr_read_options o;
    dr_read_defaults(&o);
    DR_TRY(dr__packed_open(p->folder, &o, &p->present, err));
    const dr__manifest *old = dr__packed_manifest(p->present);
    DR_TRY(check_added(p, old, err));
    p->first_sample = p->present->n_samples;
    p->m.generation = old->generation + 1;
    bool good = true;
    for (size_t i = 0; good && i < old->n_shards; i++)
        good = dr__manifest_add_shard(&p->m, &old->shards[i]);
    for (size_t i = 0; good && i < old->n_sources; i++)
        good =
            dr__manifest_add_source(&p->m, old->sources[i].name, old->sources[i].fingerprint, old->sources[i].samples);
    return good ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
}

/* --- the plan, and what an interrupted run has done of it --- */

/* Is a shard that the journal names still as it was written?  Its bytes are not read: only their number. */
static bool is_there(const dr_pack *p, const dr__set_shard *s)
{
    char path[MAX_PATH];
    struct stat st;
    uint64_t sum, size;
    snprintf(path, sizeof path, "%s/%s", p->folder, s->name);
    if (stat(path, &st) || (uint64_t)st.st_size != s->size)
        return false;
    snprintf(path, sizeof path, "%s/%s" DR__SHARD_INDEX, p->folder, s->name);
    return dr__packed_sum(path, NULL, &sum, &size, NULL) == DR_OK && size == s->index_size && sum == s->index_sum;
}

/* Are the samples in these shards, which begin with the first of the source, still what was packed? */
static dr_status check_sources(const dr_pack *p, const dr__set_shard *shards, size_t n, dr_error *err)
{
    dr_pack_changes found = { 0 };
    for (size_t i = 0; i < n; i++) {
        dr_error why = { 0 };
        const dr_status status =
            dr__marks_compare(p->folder, shards[i].name, shards[i].samples, p->set, found.samples, &found, &why);
        if (status == DR_ERR_NOMEM)
            return dr__fail(err, status, "%s", why.text);
        if (status != DR_OK)
            return dr__fail(err, DR_ERR_STATE,
                            "%s: whether %s has changed since it was packed is not known (%s); delete %s to pack it "
                            "anew, or pack into another folder",
                            p->folder, p->set->name, why.text, p->folder);
    }
    if (!found.changed)
        return DR_OK;
    return dr__fail(err, DR_ERR_STATE,
                    "%s: %" PRIu64 " of the %" PRIu64 " samples in it have changed in %s since they were packed: %s%s; "
                    "delete %s to pack them anew, or pack into another folder",
                    p->folder, found.changed, found.samples, p->set->name, found.names,
                    found.changed > 3 ? ", ..." : "", p->folder);
}

static dr_status take_journal(dr_pack *p, const dr__manifest *journal, dr_error *err)
{
    char what_now[300];
    if (p->present)
        snprintf(what_now, sizeof what_now,
                 "give the same ones, or delete " DR__SET_JOURNAL " there to forget the addition that was begun");
    else
        snprintf(what_now, sizeof what_now, "give the same ones, or delete the folder to begin anew");
    DR_TRY(
        dr__plan_check(p, journal->plan, "packing was begun here with other arguments or other data", what_now, err));
    size_t n_taken = 0;
    for (size_t i = p->m.n_shards; i < journal->n_shards && is_there(p, &journal->shards[i]); i++) {
        if (!dr__manifest_add_shard(&p->m, &journal->shards[i]))
            return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
        p->resumed += journal->shards[i].samples;
        n_taken++;
    }
    p->next = p->written = p->resumed;
    return check_sources(p, p->m.shards + p->m.n_shards - n_taken, n_taken, err);
}

/* The journal, if there is one that can be read: one that is damaged is begun anew. */
static dr_status resume(dr_pack *p, dr_error *err)
{
    dr__manifest journal;
    if (!dr__manifest_exists(p->folder, DR__SET_JOURNAL))
        return DR_OK;
    dr_status status = dr__manifest_read(p->folder, DR__SET_JOURNAL, NULL, &journal, err);
    if (status == DR_ERR_FORMAT)
        return DR_OK;
    DR_TRY(status);
    status = take_journal(p, &journal, err);
    dr__manifest_free(&journal);
    return status;
}

/* A set that is complete: the one that is asked for? */
static dr_status present_is(dr_pack *p, dr_error *err)
{
    dr__manifest old;
    DR_TRY(dr__manifest_read(p->folder, DR__SET_MANIFEST, NULL, &old, err));
    dr_status status =
        dr__plan_check(p, old.plan, "is a packed set already, made of other data or in another way",
                       "pack into another folder, delete this one first, or add to it (append, --append)", err);
    if (status != DR_OK) {
        dr__manifest_free(&old);
        return status;
    }
    dr__manifest_free(&p->m);
    p->m = old;
    return DR_OK;
}

static dr_status set_plan(dr_pack *p, dr_error *err)
{
    dr__free(p->m.plan);
    p->m.plan = dr__plan_text(p);
    return p->m.plan ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
}

/* An addition that was interrupted between its manifest and the end of its journal is complete. */
static dr_status finish_addition(dr_pack *p, dr_error *err)
{
    dr__manifest journal;
    if (!dr__manifest_exists(p->folder, DR__SET_JOURNAL) ||
        dr__manifest_read(p->folder, DR__SET_JOURNAL, NULL, &journal, NULL) != DR_OK)
        return DR_OK;
    const bool over = journal.generation == p->m.generation - 1; /* that of the manifest */
    if (over) {
        p->m.generation--;
        dr_status status = set_plan(p, err);
        p->finished = status == DR_OK && journal.plan && !strcmp(journal.plan, p->m.plan);
        p->m.generation++;
        if (status == DR_OK)
            status = remove_journal(p, err);
        if (status != DR_OK) {
            dr__manifest_free(&journal);
            return status;
        }
    }
    dr__manifest_free(&journal);
    return DR_OK;
}

static dr_status look_at_folder(dr_pack *p, dr_error *err)
{
    DR_TRY(set_plan(p, err));
    if (p->present) {
        DR_TRY(finish_addition(p, err));
        DR_TRY(set_plan(p, err));
        return p->finished ? DR_OK : resume(p, err);
    }
    if (!dr__manifest_exists(p->folder, DR__SET_MANIFEST))
        return resume(p, err);
    DR_TRY(present_is(p, err));
    DR_TRY(check_sources(p, p->m.shards, p->m.n_shards, err));
    p->finished = true;
    return remove_journal(p, err);
}

/* --- room --- */

/* What a few samples of the rest take, and the whole by them. */
static dr_status estimate(dr_pack *p, dr_error *err)
{
    const uint64_t first = p->written, n = p->set->n_samples - first, step = DR_MAX(n / LOOK_AT, 1);
    dr__workbench *bench = dr__workbench_new();
    dr__made made = { 0 };
    uint64_t bytes = 0, looked = 0;
    dr_status status = bench ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "pack: out of memory");
    for (uint64_t id = first; status == DR_OK && id < p->set->n_samples && looked < LOOK_AT; id += step, looked++) {
        if (dr__made_fill(&made, &p->recipe, bench, id, NULL) != DR_OK)
            continue; /* whoever packs it says so */
        bytes += made.run.n;
    }
    dr__made_free(&made);
    dr__workbench_free(&bench);
    p->estimated = looked ? bytes * n / looked : 0;
    return status;
}

static dr_status check_room(dr_pack *p, dr_error *err)
{
    struct statvfs fs;
    if (p->written >= p->set->n_samples)
        return DR_OK;
    DR_TRY(estimate(p, err));
    if (!p->o.check_space || statvfs(p->folder, &fs))
        return DR_OK;
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (p->estimated <= free_bytes)
        return DR_OK;
    return dr__fail(err, DR_ERR_LIMIT, "%s: the shards will take about %.1f MB, the disk has %.1f MB left", p->folder,
                    (double)p->estimated / 1e6, (double)free_bytes / 1e6);
}

/* --- saving --- */

static dr_status save(const dr_pack *p, const char *name, dr_error *err)
{
    char *text = dr__manifest_encode(&p->m);
    dr_status status = text ? dr__atomic_save(p->folder, name, text, strlen(text), err)
                            : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
    dr__free(text);
    return status;
}

dr_status dr__pack_save_journal(const dr_pack *p, dr_error *err)
{
    return save(p, DR__SET_JOURNAL, err);
}

dr_status dr__pack_save_manifest(dr_pack *p, dr_error *err)
{
    if (!dr__manifest_add_source(&p->m, p->set->name, p->set->fingerprint, p->set->n_samples))
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
    DR_TRY(save(p, DR__SET_MANIFEST, err));
    return remove_journal(p, err);
}

/* The store that readers of the set look for: packed.c. */
static dr_status open_seek(dr_pack *p, dr_error *err)
{
    char real[PATH_MAX], first[300], path[MAX_PATH], beside[MAX_PATH + 16], identity[MAX_PATH + 16];
    const int f = p->recipe.first_field;
    if (!p->o.seek_points || f < 0 || p->m.prefix || strcmp(p->m.fields[f].field.name, "image") != 0)
        return DR_OK;
    if (!dr__source_real_name(p->folder, real, sizeof real))
        return DR_OK;
    snprintf(first, sizeof first, "%s-000000.tar", p->name);
    snprintf(path, sizeof path, "%s/%s", real, p->m.n_shards ? p->m.shards[0].name : first);
    snprintf(beside, sizeof beside, "%s.drapps-seek", path);
    snprintf(identity, sizeof identity, "content of %s", path);
    return dr__seek_store_open(beside, identity, SEEK_MEMORY, &p->recipe.seek, err);
}

static dr_status plan_fields(dr_pack *p, const dr_pack_options *o, dr_error *err)
{
    DR_TRY(take_ops(p, o->graph, o->n_nodes, err));
    DR_TRY(p->prefix.head ? output_fields(p, err) : take_fields(&p->m, p->set->fields, p->set->n_fields, err));
    DR_TRY(take_classes(&p->m, p->set, err));
    p->recipe.set = p->set;
    p->recipe.manifest = &p->m;
    p->recipe.keep_bad = o->keep_bad;
    p->recipe.first_field = first_field(&p->m);
    p->m.generation = 1;
    return dr__pack_choose_codecs(p, o->codec ? o->codec : "none", err);
}

dr_status dr__pack_plan(dr_pack *p, const dr_pack_options *o, dr_error *err)
{
    DR_TRY(check_options(p, o, err));
    DR_TRY(check_places(p->set, err));
    DR_TRY(plan_fields(p, o, err));
    DR_TRY(lock_folder(p, err));
    if (o->append)
        DR_TRY(add_present(p, err));
    p->recipe.first_number = p->first_sample;
    DR_TRY(dr__pack_choose_keys(&p->recipe, p->present, err));
    DR_TRY(look_at_folder(p, err));
    if (p->finished) {
        p->next = p->written = p->resumed = p->set->n_samples;
        return DR_OK;
    }
    remove_parts(p);
    DR_TRY(check_room(p, err));
    p->recipe.check_images = o->check_images;
    DR_TRY(open_seek(p, err));
    return dr__pack_save_journal(p, err);
}
