/* info.h: what this build and this machine are. */
#ifndef DRAPPS_INFO_H
#define DRAPPS_INFO_H

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The API version: raised when a program must be changed to compile or work.  Apart from the release version. */
#define DR_API_VERSION 1

DR_API int dr_api_version(void);

/* "0.1.0" */
DR_API const char *dr_version(void);

/* Version, CPU level, codecs with their libraries, devices, limits of the container (CPU quota, memory), as JSON.
 * Free with dr_text_free (graph.h). */
DR_API dr_status dr_info(char **text, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
