#include "include/folding.h"
#include "folding_tables.h"

static uint32_t record(uint32_t scalar) {
  if (scalar > 0x10FFFF) return 0;
  uint32_t block = folding_index[scalar / FOLDING_BLOCK];
  return folding_blocks[block * FOLDING_BLOCK + scalar % FOLDING_BLOCK];
}

uint32_t ctidemark_folding_version(void) { return FOLDING_VERSION; }

uint32_t ctidemark_folding_properties(uint32_t scalar) {
  return folding_properties[record(scalar)];
}

uint32_t ctidemark_folding_decomposed(uint32_t scalar, uint32_t position) {
  uint32_t number = record(scalar);
  if (position >= (folding_properties[number] >> 12 & 15)) return scalar;
  return folding_scalars[folding_decomposed[number] + position];
}

uint32_t ctidemark_folding_folded(uint32_t scalar, uint32_t position) {
  uint32_t number = record(scalar);
  if (position >= (folding_properties[number] >> 16 & 15)) return scalar;
  return folding_scalars[folding_folded[number] + position];
}
