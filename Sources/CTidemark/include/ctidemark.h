// The few things that Swift cannot say itself: the processor's CRC instructions.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `crc` (0 to begin).
uint32_t ctidemark_crc32c(uint32_t crc, const void *bytes, size_t count);
