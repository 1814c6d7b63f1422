#include "ctidemark.h"

// CRC-32C, polynomial 0x82f63b78 reflected. Processor instructions where there are some,
// else a table; the results are the same.

static uint32_t crc32c_table[256];

__attribute__((constructor)) static void ctidemark_fill_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; bit++) {
      value = (value >> 1) ^ (0x82f63b78u & (0u - (value & 1u)));
    }
    crc32c_table[i] = value;
  }
}

static uint32_t crc32c_portable(uint32_t crc, const uint8_t *p, size_t count) {
  for (size_t i = 0; i < count; i++) {
    crc = crc32c_table[(crc ^ p[i]) & 0xff] ^ (crc >> 8);
  }
  return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <string.h>

__attribute__((target("sse4.2"))) static uint32_t crc32c_hardware(
    uint32_t crc, const uint8_t *p, size_t count) {
  uint64_t wide = crc;
  while (count >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
    p += 8;
    count -= 8;
  }
  crc = (uint32_t)wide;
  while (count > 0) {
    crc = _mm_crc32_u8(crc, *p);
    p++;
    count--;
  }
  return crc;
}

static int has_hardware(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#include <string.h>

static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t count) {
  while (count >= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    crc = __crc32cd(crc, word);
    p += 8;
    count -= 8;
  }
  while (count > 0) {
    crc = __crc32cb(crc, *p);
    p++;
    count--;
  }
  return crc;
}

static int has_hardware(void) { return 1; }
#else
static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t count) {
  return crc32c_portable(crc, p, count);
}

static int has_hardware(void) { return 0; }
#endif

uint32_t ctidemark_crc32c(uint32_t crc, const void *bytes, size_t count) {
  crc = ~crc;
  crc = has_hardware() ? crc32c_hardware(crc, bytes, count) : crc32c_portable(crc, bytes, count);
  return ~crc;
}
