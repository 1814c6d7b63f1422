#include "ctidemark.h"

#include <pthread.h>
#include <string.h>

// CRC-32C, polynomial 0x82f63b78 reflected. Processor instructions where there are some,
// else tables; the results are the same.

// `tables[n][byte]` is what a byte adds to the checksum when n more bytes follow it, so that eight
// bytes are looked up without waiting for each other.
static uint32_t tables[8][256];

static void fill_tables(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t value = i;
    for (int bit = 0; bit < 64; bit++) {
      value = (value >> 1) ^ (0x82f63b78u & (0u - (value & 1u)));
      if (bit % 8 == 7) tables[bit / 8][i] = value;
    }
  }
}

static uint32_t crc32c_portable(uint32_t crc, const uint8_t *p, size_t count) {
  static pthread_once_t filled = PTHREAD_ONCE_INIT;
  pthread_once(&filled, fill_tables);
  for (; count >= 8; p += 8, count -= 8) {
    crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
          tables[4][crc >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^
          tables[0][p[7]];
  }
  for (; count > 0; p++, count--) crc = tables[0][(crc ^ *p) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>

#define WITH_INSTRUCTIONS __attribute__((target("sse4.2")))
#define CRC32C_WORD(crc, word) _mm_crc32_u64(crc, word)
#define CRC32C_BYTE(crc, byte) _mm_crc32_u8(crc, byte)

static int has_crc32c(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__)
#include <arm_acle.h>

#include "arm.h"

#define WITH_INSTRUCTIONS __attribute__((target("+crc")))
#define CRC32C_WORD(crc, word) __crc32cd((uint32_t)(crc), word)
#define CRC32C_BYTE(crc, byte) __crc32cb(crc, byte)

static int has_crc32c(void) { return arm_has_crc32(); }
#endif

#if defined(WITH_INSTRUCTIONS)
WITH_INSTRUCTIONS static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t count) {
  uint64_t wide = crc;
  for (; count >= 8; p += 8, count -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    wide = CRC32C_WORD(wide, word);
  }
  crc = (uint32_t)wide;
  for (; count > 0; p++, count--) crc = CRC32C_BYTE(crc, *p);
  return crc;
}
#else
static int has_crc32c(void) { return 0; }

static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t count) {
  return crc32c_portable(crc, p, count);
}
#endif

uint32_t ctidemark_crc32c(uint32_t crc, const void *bytes, size_t count) {
  crc = ~crc;
  crc = has_crc32c() ? crc32c_hardware(crc, bytes, count) : crc32c_portable(crc, bytes, count);
  return ~crc;
}
