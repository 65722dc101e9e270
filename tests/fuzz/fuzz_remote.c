/* fuzz_remote.c: any bytes as what servers of remote data answer: headers, listings in HTML, JSON and XML, manifests;
 * and as a file of AWS's tools.  The first byte chooses. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "source/aws_config.h"
#include "source/http_header.h"
#include "source/http_listing.h"
#include "source/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dr_status take(dr__source_lister *lister, const dr__source_entry *e, dr_error *err)
{
    (void)lister, (void)err;
    assert(*e->name && !strchr(e->name, '/') && strcmp(e->name, ".") && strcmp(e->name, ".."));
    return DR_OK;
}

static dr_status take_s3(void *user, const dr__s3_entry *e, dr_error *err)
{
    (void)user, (void)err;
    assert(*e->key);
    return DR_OK;
}

static void headers(const char *text, size_t n)
{
    dr__http_facts f;
    dr__http_facts_clear(&f);
    for (const char *end = text + n; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t len = stop ? (size_t)(stop - text) + 1 : (size_t)(end - text);
        dr__http_facts_line(&f, text, len, 1000000000);
        text += len;
    }
    assert(!f.has_range || (f.first <= f.last && f.last < f.range_total));
    assert(memchr(f.etag, 0, sizeof f.etag) && memchr(f.extra, 0, sizeof f.extra) &&
           memchr(f.location, 0, sizeof f.location));
    char value[64];
    dr__http_extra(f.extra, "x-a", value, sizeof value);
}

static void manifest(const char *text, size_t n)
{
    dr__source_lister lister = { .take = take };
    dr__name_tree tree = { 0 };
    if (dr__http_manifest(text, n, "m", &tree, NULL) == DR_OK) {
        dr__name_tree_list(&tree, "", &lister, NULL);
        dr__name_tree_list(&tree, "a", &lister, NULL);
    }
    dr__name_tree_free(&tree);
}

static void xml(const char *text, size_t n)
{
    dr__s3_page page = { .take = take_s3 };
    char value[64];
    dr__s3_list_parse(text, n, &page, NULL);
    dr__free(page.next.text);
    dr__s3_element(text, n, "Code", value, sizeof value);
}

static void profile(const char *text, size_t n)
{
    bool found;
    dr__free(dr__aws_profile_value(text, n, n & 1, "default", NULL, "region", &found));
    dr__free(dr__aws_profile_value(text, n, n & 1, "p", "s3", "addressing_style", &found));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dr__source_lister lister = { .take = take };
    size_t n;
    if (!size)
        return 0;
    char *text = malloc(size - 1 ? size - 1 : 1); /* of the exact size, so that a byte too many is seen */
    memcpy(text, data + 1, size - 1);
    switch (data[0]) {
    case 'h':
        headers(text, size - 1);
        break;
    case 'l':
        dr__http_listing_html(text, size - 1, "/d/", &lister, &n, NULL);
        break;
    case 'j':
        dr__http_listing_json(text, size - 1, &lister, &n, NULL);
        break;
    case 'm':
        manifest(text, size - 1);
        break;
    case 'x':
        xml(text, size - 1);
        break;
    case 'p':
        profile(text, size - 1);
        break;
    default:
        break;
    }
    free(text);
    return 0;
}
