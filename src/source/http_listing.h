/* http_listing.h: what web servers answer for a folder, and manifests. */
#ifndef DR_SOURCE_HTTP_LISTING_H
#define DR_SOURCE_HTTP_LISTING_H

#include "source/name_tree.h"
#include "source/source.h"

/* Hands over the entries of a listing in HTML: its links that name something directly below the folder.  So nginx,
 * Apache, lighttpd, Caddy, `python -m http.server` and `rclone serve http` are understood.  base: the folder's path in
 * URLs, with a slash at both ends, as links may begin with it.  *n counts the entries.  DR_END of the lister ends it.
 */
dr_status dr__http_listing_html(const char *text, size_t size, const char *base, dr__source_lister *lister, size_t *n,
                                dr_error *err);

/* The same for nginx's autoindex_format json.  DR_ERR_FORMAT: it is something else. */
dr_status dr__http_listing_json(const char *text, size_t size, dr__source_lister *lister, size_t *n, dr_error *err);

/* Adds the paths of a manifest: one a line, relative to the folder; or JSON objects, one a line, whose "path" it is.
 * Empty lines do not count.  DR_ERR_FORMAT names the line that is neither. */
dr_status dr__http_manifest(const char *text, size_t size, const char *name, dr__name_tree *out, dr_error *err);

#endif
