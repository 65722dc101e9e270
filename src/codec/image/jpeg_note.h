/* jpeg_note.h: what is kept of a JPEG so that it can be read in ranges the next time.
 *
 * Seek points are known by the bytes of a file.  Whoever has not read these bytes looks for a note first, by the name
 * of the file: it says which bytes were there, in which version of the file, and how their header begins to be decoded.
 */
#ifndef DR_CODEC_JPEG_NOTE_H
#define DR_CODEC_JPEG_NOTE_H

#include "codec/image/jpeg_partial.h"

/* What identifies the encoded bytes of an image. */
typedef struct dr__seek_key {
    uint64_t hash; /* xxh3 of the encoded bytes */
    uint64_t size;
} dr__seek_key;

typedef struct dr__jpeg_note {
    dr__seek_key content;
    uint64_t version; /* of the file that had it (source/source.h); 0: its name says it all */
    uint32_t when;    /* seconds since 2020: of two notes the later one counts */
    dr__jpeg_head head;
} dr__jpeg_note;

/* The name of a note that is found by the bytes themselves: those of a packed set are known by their checksums. */
uint64_t dr__jpeg_note_name(const dr__seek_key *content);

enum { DR__JPEG_NOTE_MOST = DR__JPEG_HEAD_MOST + 64 };

/* The note as few bytes: at most DR__JPEG_NOTE_MOST; returns how many.  Huffman tables of JPEG's annex K, which most
 * files have, take a byte each. */
size_t dr__jpeg_note_pack(const dr__jpeg_note *note, uint8_t *bytes);

/* The reverse.  False: these bytes are no packed note. */
bool dr__jpeg_note_unpack(dr__jpeg_note *note, const uint8_t *bytes, size_t size);

/* When the note was made, of packed bytes that are one; else 0. */
uint32_t dr__jpeg_note_when(const uint8_t *bytes, size_t size);

#endif
