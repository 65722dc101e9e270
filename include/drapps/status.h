/* status.h: how calls of libdrapps report what happened.
 *
 * Every call that can fail returns a dr_status: 0 done, > 0 done with news, < 0 failed.  A failing call also fills
 * the dr_error that the caller handed in (NULL is allowed: then only the status is told).  The text names the file,
 * sample or op, the value seen and the value allowed.  No call prints, exits or aborts because of its input.
 */
#ifndef DRAPPS_STATUS_H
#define DRAPPS_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define DR_API __declspec(dllexport)
#elif defined(__GNUC__)
#define DR_API __attribute__((visibility("default")))
#else
#define DR_API
#endif

/* X(name, value, text).  Values are pinned: they are never renumbered or reused. */
#define DR_STATUS_MAP(X)                                                                                               \
    X(OK, 0, "done")                                                                                                   \
    X(END, 1, "the epoch is over")                                                                                     \
    X(AGAIN, 2, "nothing ready within the time given")                                                                 \
    X(ERR_ARG, -1, "an argument is wrong")                                                                             \
    X(ERR_NOMEM, -2, "out of memory")                                                                                  \
    X(ERR_IO, -3, "reading or writing failed")                                                                         \
    X(ERR_FORMAT, -4, "data is damaged or not of the expected format")                                                 \
    X(ERR_LIMIT, -5, "a limit would be exceeded")                                                                      \
    X(ERR_UNSUPPORTED, -6, "not supported by this build")                                                              \
    X(ERR_STATE, -7, "the call does not fit the object's state")                                                       \
    X(ERR_CANCELLED, -8, "cancelled")                                                                                  \
    X(ERR_FORKED, -9, "the object belongs to the parent process")                                                      \
    X(ERR_NOT_FOUND, -10, "no such file, field, op or setting")                                                        \
    X(ERR_BAD_SAMPLES, -11, "too many bad samples")

typedef enum dr_status {
#define DR_STATUS_ENUM(name, value, text) DR_##name = value,
    DR_STATUS_MAP(DR_STATUS_ENUM)
#undef DR_STATUS_ENUM
} dr_status;

enum { DR_ERROR_TEXT = 1024 };

/* What went wrong.  Owned by whoever declares it; a plain value, nothing to free. */
typedef struct dr_error {
    dr_status status;
    char text[DR_ERROR_TEXT];
} dr_error;

/* The constant text of a status; never NULL. */
DR_API const char *dr_status_text(dr_status status);

/* The name of a status as in the enum, without its prefix: "ERR_IO". */
DR_API const char *dr_status_name(dr_status status);

#ifdef __cplusplus
}
#endif
#endif
