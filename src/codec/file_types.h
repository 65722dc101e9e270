/* file_types.h: the file name extensions that drapps knows, each with its kind of data and the codec that reads it.
 *
 * This is the only such list: folders and tar shards find images by it, dr_codecs_json hands it to front ends.  A row
 * may name a codec that this build is without; such files are found, and are bad samples when they are decoded.
 */
#ifndef DR_CODEC_FILE_TYPES_H
#define DR_CODEC_FILE_TYPES_H

#include <stddef.h>

typedef enum dr__file_kind { DR__FILE_IMAGE, DR__FILE_VOLUME, DR__FILE_AUDIO } dr__file_kind;

/* Image files that folders take by default: the extensions of torchvision's ImageFolder, in its order. */
#define DR_FOLDER_FILE_TYPES(X)                                                                                        \
    X(".jpg", IMAGE, "jpeg")                                                                                           \
    X(".jpeg", IMAGE, "jpeg")                                                                                          \
    X(".png", IMAGE, "png")                                                                                            \
    X(".ppm", IMAGE, "pnm")                                                                                            \
    X(".bmp", IMAGE, "bmp")                                                                                            \
    X(".pgm", IMAGE, "pnm")                                                                                            \
    X(".tif", IMAGE, "tiff")                                                                                           \
    X(".tiff", IMAGE, "tiff")                                                                                          \
    X(".webp", IMAGE, "webp")

#define DR_OTHER_FILE_TYPES(X)                                                                                         \
    X(".jpe", IMAGE, "jpeg")                                                                                           \
    X(".jfif", IMAGE, "jpeg")                                                                                          \
    X(".gif", IMAGE, "gif")                                                                                            \
    X(".pbm", IMAGE, "pnm")                                                                                            \
    X(".pnm", IMAGE, "pnm")                                                                                            \
    X(".nii", VOLUME, "nifti")                                                                                         \
    X(".nii.gz", VOLUME, "nifti")                                                                                      \
    X(".npy", VOLUME, "npy")

typedef struct dr__file_type {
    const char *extension; /* lower case, with its dot */
    dr__file_kind kind;
    const char *codec; /* its name */
} dr__file_type;

extern const dr__file_type dr__file_types[];      /* those of folders first; a NULL extension ends it */
extern const char *const dr__folder_extensions[]; /* of DR_FOLDER_FILE_TYPES; NULL ends it */

/* Returns the row of an extension (with its dot, in any case), or NULL where it is not known. */
const dr__file_type *dr__file_type_find(const char *extension);

/* "image", "volume", "audio". */
const char *dr__file_kind_name(dr__file_kind kind);

#endif
