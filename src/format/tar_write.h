/* tar_write.h: the bytes of tar archives, in GNU's form, with nothing of the machine in them: no times, no owners. */
#ifndef DR_FORMAT_TAR_WRITE_H
#define DR_FORMAT_TAR_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { DR__TAR_BLOCK = 512, DR__TAR_END = 2 * DR__TAR_BLOCK };

/* Adds the header of a regular file; a name of 100 bytes or more gets a header of its own before it.  The member's
 * bytes follow, and then dr__tar_put_padding. */
void dr__tar_put_header(dr__text *out, const char *name, uint64_t size);

/* Adds the zero bytes that end a member of `size` bytes. */
void dr__tar_put_padding(dr__text *out, uint64_t size);

#endif
