/* status.h: how calls of libdrapps report what happened.
 *
 * Every call that can fail returns a dr_status: 0 on success, > 0 on success with a condition that the caller may want
 * to know, < 0 on failure.  A failing call also fills the dr_error that the caller handed in.  Where a call takes a
 * `dr_error *err`, NULL is allowed: the text is then not written.  No call prints, exits or aborts because of its
 * input.
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

/* X(name, value, text).  All statuses.  Values are never renumbered or reused. */
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

/* The result of a call: DR_OK, DR_END, DR_ERR_ARG, ... */
typedef enum dr_status {
#define DR_STATUS_ENUM(name, value, text) DR_##name = value,
    DR_STATUS_MAP(DR_STATUS_ENUM)
#undef DR_STATUS_ENUM
} dr_status;

/* Size of an error text in bytes, its terminating zero included. */
enum { DR_ERROR_TEXT = 1024 };

/* The reason of a failure.  A plain value that the caller declares; nothing has to be freed.  Written by a call that
 * fails, left alone by a call that succeeds. */
typedef struct dr_error {
    dr_status status;         /* as returned by the call */
    char text[DR_ERROR_TEXT]; /* terminated UTF-8: the file, sample or op, the value found and the values allowed */
} dr_error;

/**
 * Describe a status in a few words.
 *
 * @param status Any value.
 *
 * @return A static text; "unknown status" for a value that is none.  Never NULL.
 *
 * @note May be called from any thread.
 */
DR_API const char *dr_status_text(dr_status status);

/**
 * Get the name of a status as in the enum, without its prefix: "ERR_IO".
 *
 * @param status Any value.
 *
 * @return A static text.  Never NULL.
 *
 * @note May be called from any thread.
 */
DR_API const char *dr_status_name(dr_status status);

#ifdef __cplusplus
}
#endif
#endif
