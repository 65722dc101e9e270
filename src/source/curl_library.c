/* curl_library.c: loads libcurl. */
#include "source/curl_library.h"

#ifdef DR_HAVE_CURL

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

/* 7.75: signatures of AWS. */
enum { OLDEST = 0x074B00 };

static dr__curl_calls calls;
static char reason[256]; /* why it cannot be used; "": it can */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *open_library(void)
{
    static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.4.dylib" };
    for (size_t i = 0; i < DR_COUNT(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
        const char *text = i ? NULL : dlerror();
        if (text)
            snprintf(reason, sizeof reason, "%.200s", text);
    }
    return NULL;
}

static void load(void)
{
    void *library = open_library();
    if (!library)
        return;
    reason[0] = 0;
#define FIND(name)                                                                                                     \
    *(void **)&calls.name = dlsym(library, "curl_" #name);                                                             \
    if (!calls.name)                                                                                                   \
        snprintf(reason, sizeof reason, "it has no curl_" #name);
    DR__CURL_CALLS(FIND)
#undef FIND
    if (reason[0])
        return;
    if (calls.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        snprintf(reason, sizeof reason, "it cannot be initialised");
        return;
    }
    const curl_version_info_data *info = calls.version_info(CURLVERSION_NOW);
    if (info->version_num < OLDEST)
        snprintf(reason, sizeof reason, "it is version %s, and must be 7.75 or later", info->version);
}

const dr__curl_calls *dr__curl(dr_error *err)
{
    pthread_once(&once, load);
    if (!reason[0])
        return &calls;
    dr__fail(err, DR_ERR_UNSUPPORTED,
             "remote data needs libcurl: install libcurl4 (Debian, Ubuntu), libcurl (Fedora) or curl (Homebrew): %s",
             reason);
    return NULL;
}

#endif
