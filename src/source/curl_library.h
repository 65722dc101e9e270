/* curl_library.h: libcurl's calls, found when they are first needed.  libcurl depends on a TLS library and a dozen
 * more, which programs that read local data never need. */
#ifndef DR_SOURCE_CURL_LIBRARY_H
#define DR_SOURCE_CURL_LIBRARY_H

#ifdef DR_HAVE_CURL

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION /* what replaced the options we use is not in older libraries */
#include <curl/curl.h>

#include "base/compiler.h"
#include "base/error.h"

/* Macros of the header that take the place of variadic functions would hide the names below. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

#define DR__CURL_CALLS(X)                                                                                              \
    X(global_init)                                                                                                     \
    X(version_info)                                                                                                    \
    X(easy_init)                                                                                                       \
    X(easy_setopt)                                                                                                     \
    X(easy_getinfo)                                                                                                    \
    X(easy_pause)                                                                                                      \
    X(easy_reset)                                                                                                      \
    X(easy_cleanup)                                                                                                    \
    X(easy_strerror)                                                                                                   \
    X(multi_init)                                                                                                      \
    X(multi_setopt)                                                                                                    \
    X(multi_add_handle)                                                                                                \
    X(multi_remove_handle)                                                                                             \
    X(multi_perform)                                                                                                   \
    X(multi_poll)                                                                                                      \
    X(multi_wakeup)                                                                                                    \
    X(multi_info_read)                                                                                                 \
    X(multi_cleanup)                                                                                                   \
    X(slist_append)                                                                                                    \
    X(slist_free_all)

typedef struct dr__curl_calls {
#define DR__CURL_MEMBER(name) DR_TYPEOF(&curl_##name) name;
    DR__CURL_CALLS(DR__CURL_MEMBER)
#undef DR__CURL_MEMBER
} dr__curl_calls;

/* Loads libcurl, once; NULL: it is not there or too old, and err says so. */
const dr__curl_calls *dr__curl(dr_error *err);

#endif
#endif
