#include "ctidemark.h"

#include <string.h>

// SHA-256 as FIPS 180-4 describes it (sections 4.1.2, 4.2.2, 5.3.3 and 6.2). The names a to h, and
// those of the functions, are the standard's.

static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t rotate(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

static void take_blocks_portable(uint32_t state[8], const uint8_t *p, size_t blocks) {
  uint32_t w[64];
  for (; blocks > 0; blocks--, p += 64) {
    for (int t = 0; t < 16; t++) {
      w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 | (uint32_t)p[4 * t + 2] << 8 |
             (uint32_t)p[4 * t + 3];
    }
    for (int t = 16; t < 64; t++) {
      uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ (w[t - 15] >> 3);
      uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ (w[t - 2] >> 10);
      w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
      uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + constants[t] + w[t];
      uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1;
      d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

// Four rounds a step, by the processor's instructions, which keep the state as (a, b, e, f) and
// (c, d, g, h). The words of the schedule stand in `w`, four each; a step makes the four that are
// needed four steps later.
__attribute__((target("sha,ssse3,sse4.1"))) static void take_blocks_hardware(
    uint32_t state[8], const uint8_t *p, size_t blocks) {
  const __m128i big_endian =
      _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  __m128i abef = _mm_set_epi32(
      (int)state[0], (int)state[1], (int)state[4], (int)state[5]);
  __m128i cdgh = _mm_set_epi32(
      (int)state[2], (int)state[3], (int)state[6], (int)state[7]);
  for (; blocks > 0; blocks--, p += 64) {
    __m128i w[4], first_abef = abef, first_cdgh = cdgh;
    for (int i = 0; i < 4; i++) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), big_endian);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; i++) {
      __m128i k = _mm_loadu_si128((const __m128i *)(constants + 4 * i));
      __m128i wk = _mm_add_epi32(w[i % 4], k);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
      if (i >= 12) continue;
      __m128i next = _mm_sha256msg1_epu32(w[i % 4], w[(i + 1) % 4]);
      next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
      w[i % 4] = _mm_sha256msg2_epu32(next, w[(i + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, first_abef);
    cdgh = _mm_add_epi32(cdgh, first_cdgh);
  }
  state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
  state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
  state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
  state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

static int has_sha256(void) {
  return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1");
}
#elif defined(__aarch64__)
#include <arm_neon.h>

#include "arm.h"

// The same steps by ARM's instructions, which keep the state in the standard's order. One of them
// makes the new (a, b, c, d), the other the new (e, f, g, h); both need the old (a, b, c, d).
__attribute__((target("+crypto"))) static void take_blocks_hardware(
    uint32_t state[8], const uint8_t *p, size_t blocks) {
  uint32x4_t abcd = vld1q_u32(state), efgh = vld1q_u32(state + 4);
  for (; blocks > 0; blocks--, p += 64) {
    uint32x4_t w[4], first_abcd = abcd, first_efgh = efgh;
    for (int i = 0; i < 4; i++) w[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(p + 16 * i)));
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; i++) {
      uint32x4_t wk = vaddq_u32(w[i % 4], vld1q_u32(constants + 4 * i)), old = abcd;
      abcd = vsha256hq_u32(abcd, efgh, wk);
      efgh = vsha256h2q_u32(efgh, old, wk);
      if (i >= 12) continue;
      uint32x4_t next = vsha256su0q_u32(w[i % 4], w[(i + 1) % 4]);
      w[i % 4] = vsha256su1q_u32(next, w[(i + 2) % 4], w[(i + 3) % 4]);
    }
    abcd = vaddq_u32(abcd, first_abcd);
    efgh = vaddq_u32(efgh, first_efgh);
  }
  vst1q_u32(state, abcd);
  vst1q_u32(state + 4, efgh);
}

static int has_sha256(void) { return arm_has_sha256(); }
#else
static void take_blocks_hardware(uint32_t state[8], const uint8_t *p, size_t blocks) {
  take_blocks_portable(state, p, blocks);
}

static int has_sha256(void) { return 0; }
#endif

static void take_blocks(ctidemark_sha256 *hash, const uint8_t *p, size_t blocks) {
  if (hash->is_portable) {
    take_blocks_portable(hash->state, p, blocks);
  } else {
    take_blocks_hardware(hash->state, p, blocks);
  }
}

void ctidemark_sha256_begin(ctidemark_sha256 *hash, int is_portable) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, first, sizeof first);
  hash->length = 0;
  hash->is_portable = is_portable || !has_sha256();
}

void ctidemark_sha256_add(ctidemark_sha256 *hash, const void *bytes, size_t count) {
  const uint8_t *p = bytes;
  size_t used = hash->length % 64;
  hash->length += count;
  if (used > 0) {
    size_t part = 64 - used < count ? 64 - used : count;
    memcpy(hash->block + used, p, part);
    p += part, count -= part;
    if (used + part < 64) return;
    take_blocks(hash, hash->block, 1);
  }
  take_blocks(hash, p, count / 64);
  if (count % 64 > 0) memcpy(hash->block, p + (count - count % 64), count % 64);
}

void ctidemark_sha256_finish(ctidemark_sha256 *hash, void *digest) {
  uint64_t bits = hash->length * 8;
  size_t used = hash->length % 64;
  uint8_t end[128] = {0};
  memcpy(end, hash->block, used);
  end[used] = 0x80;
  size_t length = used < 56 ? 64 : 128;
  for (int i = 0; i < 8; i++) end[length - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
  take_blocks(hash, end, length / 64);
  uint8_t *out = digest;
  for (int i = 0; i < 32; i++) out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
