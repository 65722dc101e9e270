/* http_library.c: loads libmicrohttpd. */
#include "serve/http_library.h"

#ifdef DR_HAVE_MICROHTTPD
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

dr__http_library dr__http;

static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    loaded = library;
#define FIND(name)                                                                                                     \
    *(void **)&dr__http.name = library ? dlsym(library, #name) : NULL;                                                 \
    loaded = loaded && dr__http.name;
    DR__HTTP_CALLS(FIND)
#undef FIND
}

dr_status dr__http_load(const char *what, dr_error *err)
{
    pthread_once(&once, load);
    return loaded ? DR_OK
                  : dr__fail(err, DR_ERR_UNSUPPORTED,
                             "%s: libmicrohttpd.so.12 is not there; it comes with libmicrohttpd12 (Debian, Ubuntu), "
                             "libmicrohttpd (Fedora, Homebrew)",
                             what);
}
#else
typedef int dr__http_no_library; /* an empty file is not C */
#endif
