/* heads.c: a small table of compiled programs.  A failure to compile is kept, too: a client asks again for each sample.
 *
 * One is compiled outside of the lock, so that a large graph holds up only who sent it; two threads may then compile
 * the same, and one of the results is dropped.
 */
#include "serve/heads.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"

enum { MOST = 48 }; /* a program has some 0.4 MB */

struct dr__head {
    uint64_t set_number, hash;
    char *graph, *outputs;
    uint16_t prefix;
    dr__program *program; /* NULL: it cannot be compiled */
    dr_error why;
    int users;
    uint64_t used; /* the table's count when it was last taken */
    bool listed;
};

struct dr__heads {
    pthread_mutex_t lock;
    dr__head *all[MOST];
    uint64_t count;
};

dr__heads *dr__heads_new(void)
{
    dr__heads *h = dr__alloc_zero(1, sizeof *h);
    if (h)
        pthread_mutex_init(&h->lock, NULL);
    return h;
}

static void free_head(dr__head *head)
{
    if (!head)
        return;
    dr__program_free(&head->program);
    dr__free(head->graph);
    dr__free(head->outputs);
    dr__free(head);
}

void dr__heads_free(dr__heads **heads)
{
    dr__heads *h = *heads;
    *heads = NULL;
    for (int i = 0; h && i < MOST; i++)
        free_head(h->all[i]);
    if (h)
        pthread_mutex_destroy(&h->lock);
    dr__free(h);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static uint64_t hash_of(const dr__head_key *k)
{
    const uint64_t h = XXH3_64bits_withSeed(k->graph, strlen(k->graph), k->set_number * 65536 + k->prefix);
    return k->outputs ? XXH3_64bits_withSeed(k->outputs, strlen(k->outputs), h) : h;
}

static bool is_it(const dr__head *head, const dr__head_key *k, uint64_t hash)
{
    return head && head->hash == hash && head->set_number == k->set_number && head->prefix == k->prefix &&
           same_text(head->graph, k->graph) && same_text(head->outputs, k->outputs);
}

/* lock: */
static dr__head *find(dr__heads *h, const dr__head_key *k, uint64_t hash)
{
    for (int i = 0; i < MOST; i++)
        if (is_it(h->all[i], k, hash))
            return h->all[i];
    return NULL;
}

/* lock: lists a head in the place of the one that was not used for longest.  All in use: it is not listed. */
static void list(dr__heads *h, dr__head *head)
{
    int place = -1;
    for (int i = 0; i < MOST; i++) {
        if (!h->all[i]) {
            place = i;
            break;
        }
        if (!h->all[i]->users && (place < 0 || h->all[i]->used < h->all[place]->used))
            place = i;
    }
    if (place < 0)
        return;
    free_head(h->all[place]);
    h->all[place] = head;
    head->listed = true;
}

static dr_status compile(const dr__head_key *k, dr__program **out, dr_error *err)
{
    const dr__program_options options = { .outputs = k->outputs, .part = true, .any_shape = true };
    dr_graph *graph = NULL;
    dr__program *whole = NULL;
    dr__prefix prefix = { 0 };
    DR_TRY(dr_graph_from_json(k->graph, &graph, err));
    dr_status status = dr__program_compile(graph, k->set->fields, k->set->n_fields, &options, &whole, err);
    if (status == DR_OK)
        status = dr__prefix_offload(whole, k->set->fields, k->set->n_fields, k->prefix, &options, &prefix, err);
    *out = prefix.head;
    prefix.head = NULL;
    dr__prefix_free(&prefix);
    dr__program_free(&whole);
    dr_graph_free(&graph);
    return status == DR_OK && !*out ? dr__fail(err, DR_ERR_ARG, "prefix 0 has no ops") : status;
}

static dr__head *make(const dr__head_key *k, uint64_t hash)
{
    dr__head *head = dr__alloc_zero(1, sizeof *head);
    if (!head)
        return NULL;
    *head = (dr__head){ .set_number = k->set_number, .hash = hash, .prefix = k->prefix, .users = 1 };
    head->graph = dr__strdup(k->graph);
    head->outputs = k->outputs ? dr__strdup(k->outputs) : NULL;
    if (!head->graph || (k->outputs && !head->outputs)) {
        free_head(head);
        return NULL;
    }
    head->why.status = compile(k, &head->program, &head->why);
    return head;
}

static dr_status result(dr__heads *h, dr__head *head, dr__head **out, dr_error *err)
{
    if (head->program) {
        *out = head;
        return DR_OK;
    }
    const dr_error why = head->why;
    dr__heads_give_back(h, &head);
    return dr__fail(err, why.status, "%s", why.text);
}

dr_status dr__heads_take(dr__heads *h, const dr__head_key *k, dr__head **out, dr_error *err)
{
    const uint64_t hash = hash_of(k);
    *out = NULL;
    pthread_mutex_lock(&h->lock);
    dr__head *head = find(h, k, hash);
    if (head) {
        head->users++;
        head->used = ++h->count;
    }
    pthread_mutex_unlock(&h->lock);
    if (head)
        return result(h, head, out, err);
    head = make(k, hash);
    if (!head)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    pthread_mutex_lock(&h->lock);
    head->used = ++h->count;
    if (head->why.status != DR_ERR_NOMEM && !find(h, k, hash))
        list(h, head);
    pthread_mutex_unlock(&h->lock);
    return result(h, head, out, err);
}

void dr__heads_give_back(dr__heads *h, dr__head **head)
{
    dr__head *it = *head;
    *head = NULL;
    pthread_mutex_lock(&h->lock);
    const bool gone = --it->users == 0 && !it->listed;
    pthread_mutex_unlock(&h->lock);
    if (gone)
        free_head(it);
}

const dr__program *dr__head_program(const dr__head *head)
{
    return head->program;
}
