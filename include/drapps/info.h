/* info.h: versions of this build, and limits of this machine.  All calls may be made from any thread. */
#ifndef DRAPPS_INFO_H
#define DRAPPS_INFO_H

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the API, which differs from the release version.  It is raised when programs must be changed to
 * compile or work. */
#define DR_API_VERSION 1

/**
 * Get the version of the API that the library was built with.
 *
 * @return DR_API_VERSION of the library.
 */
DR_API int dr_api_version(void);

/**
 * Get the release version.
 *
 * @return A static text: "0.1.0".  Never NULL.
 */
DR_API const char *dr_version(void);

/**
 * Describe the build and the machine.
 *
 * @param text Receives a JSON object with the version, CPU level, codecs and their libraries, formats, devices, and
 *             limits of the container (CPU quota, memory).  The caller frees it by dr_text_free (graph.h).
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_info(char **text, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
