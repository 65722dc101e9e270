/* http_library.h: libmicrohttpd, loaded when the first server of the process is started.
 *
 * It is not linked: it depends on a TLS library and nine more, which most programs never need.
 */
#ifndef DR_SERVE_HTTP_LIBRARY_H
#define DR_SERVE_HTTP_LIBRARY_H

#ifdef DR_HAVE_MICROHTTPD
#include <microhttpd.h>

#include "base/compiler.h"
#include "base/error.h"

#define DR__HTTP_CALLS(X)                                                                                              \
    X(MHD_start_daemon)                                                                                                \
    X(MHD_stop_daemon)                                                                                                 \
    X(MHD_quiesce_daemon)                                                                                              \
    X(MHD_is_feature_supported)                                                                                        \
    X(MHD_create_response_from_buffer)                                                                                 \
    X(MHD_create_response_from_buffer_with_free_callback_cls)                                                          \
    X(MHD_create_response_from_callback)                                                                               \
    X(MHD_create_response_from_fd_at_offset64)                                                                         \
    X(MHD_add_response_header)                                                                                         \
    X(MHD_queue_response)                                                                                              \
    X(MHD_destroy_response)                                                                                            \
    X(MHD_suspend_connection)                                                                                          \
    X(MHD_resume_connection)                                                                                           \
    X(MHD_get_connection_info)                                                                                         \
    X(MHD_lookup_connection_value)

typedef struct dr__http_library {
#define DR__HTTP_MEMBER(name) DR_TYPEOF(&name) name;
    DR__HTTP_CALLS(DR__HTTP_MEMBER)
#undef DR__HTTP_MEMBER
} dr__http_library;

/* The library's calls, once it is loaded. */
extern dr__http_library dr__http;

/* Loads it.  DR_ERR_UNSUPPORTED: it is not there.  `what` names who needs it. */
dr_status dr__http_load(const char *what, dr_error *err);

#endif
#endif
