/* exif.h: the orientation of a photo, out of its metadata. */
#ifndef DR_CODEC_EXIF_H
#define DR_CODEC_EXIF_H

#include <stddef.h>
#include <stdint.h>

/* 1..8 from a TIFF block (with or without "Exif\0\0" before it); 0 when it has none or is damaged. */
int dr__exif_orientation(const uint8_t *data, size_t size);

/* 1..8 from an XMP packet (tiff:Orientation); 0 when it has none.  Pillow looks here when EXIF says nothing. */
int dr__xmp_orientation(const uint8_t *data, size_t size);

#endif
