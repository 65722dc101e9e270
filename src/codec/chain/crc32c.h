/* crc32c.h: the checksum of the Snappy framing format (Castagnoli's polynomial, reflected). */
#ifndef DR_CODEC_CRC32C_H
#define DR_CODEC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dr__crc32c(const uint8_t *data, size_t size);

#endif
