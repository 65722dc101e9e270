/* scratch.h: memory between stages, kept for each thread, because fresh pages cost more than many a stage. */
#ifndef DR_CODEC_SCRATCH_H
#define DR_CODEC_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

enum { DR__SCRATCH_EVEN, DR__SCRATCH_ODD, DR__SCRATCH_RAW, DR__SCRATCH_COUNT };

/* The calling thread's block of that name, at least `size` bytes of garbage; NULL: memory is short.  Valid until the
 * next call with the same name, or dr__scratch_done. */
uint8_t *dr__scratch(unsigned which, size_t size);

/* The thread needs none of them for now: large ones are freed. */
void dr__scratch_done(void);

#endif
