/* url.h: URLs of objects: joining, percent-encoding, and what messages may show of them. */
#ifndef DR_SOURCE_URL_H
#define DR_SOURCE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Adds a path to a URL, percent-encoded but for its slashes.  all: nothing but the unreserved characters of RFC 3986
 * stays, slashes included: as in a query of S3. */
void dr__url_encode(dr__text *out, const char *path, size_t size, bool all);

/* Adds text that is already a URL; only what may not be in one (blanks, controls, bytes above 126) is encoded. */
void dr__url_clean(dr__text *out, const char *url, size_t size);

/* Decodes in place; returns the new length.  A '%' without two hexadecimal digits stays. */
size_t dr__url_decode(char *text, size_t size);

/* A URL in its parts; lengths in bytes, borrowed from the text. */
typedef struct dr__url_parts {
    const char *scheme, *user, *host, *path, *query;
    size_t scheme_len, user_len, host_len, path_len, query_len; /* user: with what follows ':'; host: with the port;
                                                                   path: with its first slash; query: with its '?' */
} dr__url_parts;

/* False: it is not SCHEME://HOST... with a host of letters, digits and "-.:[]_". */
bool dr__url_split(const char *url, dr__url_parts *out);

#endif
