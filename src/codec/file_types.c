/* file_types.c: the list of extensions as arrays. */
#include "codec/file_types.h"

#include <strings.h>

#define TEXT(extension, kind, codec) extension,
#define ROW(extension, kind, codec) { extension, DR__FILE_##kind, codec },

const char *const dr__folder_extensions[] = { DR_FOLDER_FILE_TYPES(TEXT) NULL };

const dr__file_type dr__file_types[] = { DR_FOLDER_FILE_TYPES(ROW) DR_OTHER_FILE_TYPES(ROW){ NULL } };

const dr__file_type *dr__file_type_find(const char *extension)
{
    for (const dr__file_type *t = dr__file_types; t->extension; t++)
        if (!strcasecmp(t->extension, extension))
            return t;
    return NULL;
}

const char *dr__file_kind_name(dr__file_kind kind)
{
    static const char *const names[] = { "image", "volume", "audio" };
    return names[kind];
}
