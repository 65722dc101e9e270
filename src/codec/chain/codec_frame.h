/* codec_frame.h: the header of a frame.
 *
 *   d7 "DRC"  u8 version  u8 flags  u8 dtype  u8 kind  u8 layout * 16 + number of axes  u8 block log  u8 number of
 * stages for each stage: u8 wire id, signed varint parameter a varint for each axis u32 dictionary (flag 1), 3 doubles
 * of spacing (flag 2), 2 doubles of error bounds (flag 4) u64 checksum the blocks: u32 size + stages applied << 29; u32
 * size after each applied stage that is not fixed, but the last; bytes
 *
 * Little-endian.  A block is 1 << log raw bytes, the last one what is left.  The checksum is XXH3 of each raw block (as
 * it is decoded), seeded by that of the block before, and at last of the header up to here.
 */
#ifndef DR_CODEC_CODEC_FRAME_H
#define DR_CODEC_CODEC_FRAME_H

#include "codec/chain/codec_chain.h"

enum {
    DR__CODEC_FRAME_VERSION = 1,
    DR__CODEC_FRAME_HEADER_MAX = 11 + DR__MAX_STAGES * 6 + DR_MAX_DIMS * 10 + 4 + 24 + 16 + 8,
    DR__CODEC_FRAME_BLOCK_LOG_MIN = 10,
    DR__CODEC_FRAME_BLOCK_LOG_MAX = 28,
    DR__BLOCK_SIZE_BITS = 29,
};

typedef struct dr__codec_frame {
    dr__chain chain;
    dr__chain_plan plan;
    dr_desc desc;
    size_t raw_bytes;
    unsigned block_log;
    uint32_t dict_id;
    double abs_error, rel_error;
    uint64_t checksum;
    size_t head_bytes; /* of the header, its checksum included */
} dr__codec_frame;

/* Writes the header; returns its size.  `checksum` is that of the blocks. */
size_t dr__codec_frame_write_head(const dr__codec_frame *f, uint64_t checksum, uint8_t *out);

/* Reads and checks a header, and all block headers up to the end of the frame. */
dr_status dr__codec_frame_read(const void *frame, size_t size, dr__codec_frame *out, dr_error *err);

/* Raw bytes of the block that begins at raw byte `at`. */
size_t dr__codec_frame_block_bytes(const dr__codec_frame *f, size_t at);

/* Reads the header of a block of `raw` bytes at *at, and moves *at to its bytes; false: damaged. */
bool dr__codec_frame_read_block(const dr__codec_frame *f, const uint8_t **at, const uint8_t *end, size_t raw,
                                dr__block *block);

/* Writes it; returns its size, at most 4 * DR__MAX_STAGES. */
size_t dr__codec_frame_write_block(const dr__codec_frame *f, const dr__block *block, uint8_t *out);

/* The size that it has when `n_stages` were applied. */
size_t dr__codec_frame_block_head(const dr__codec_frame *f, unsigned n_stages);

/* Checks a description and gets its size in bytes. */
dr_status dr__codec_desc_bytes(const dr_desc *desc, size_t *bytes, dr_error *err);

uint64_t dr__codec_frame_hash(const void *data, size_t size, uint64_t before);

#endif
