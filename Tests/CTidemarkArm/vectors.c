// Compares the checksum and the hash of CTidemark with published vectors, with a slow reference,
// and the processor's instructions with the portable code. Tools/check-arm builds and runs this.
// Usage: vectors [any | required | hidden]: with the instructions that this processor has, with
// all of them or failing, or as if it had none.
#include <stdio.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

// What the sources ask for instructions with; a macro is not expanded again within itself.
static int hides;
#define getauxval(type) (hides ? 0 : getauxval(type))
#define sysctlbyname(...) (hides ? -1 : sysctlbyname(__VA_ARGS__))
#define __builtin_cpu_supports(name) (!hides && __builtin_cpu_supports(name))

// The sources themselves, so that each way can be called whatever the processor has.
#include "../../Sources/CTidemark/crc32c.c"
#include "../../Sources/CTidemark/sha256.c"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>

_Static_assert(ARM_CRC32 == HWCAP_CRC32, "the kernel has another bit for CRC-32");
_Static_assert(ARM_SHA256 == HWCAP_SHA2, "the kernel has another bit for SHA-256");
#endif

static int failures;

static void expect(int holds, const char *what, size_t count, size_t second) {
  if (holds) return;
  if (failures++ < 10) printf("  wrong: %s (%zu, %zu)\n", what, count, second);
}

// A generator of xorshift type; the numbers are the same in every run.
static uint32_t random_below(uint32_t bound) {
  static uint64_t state = 88172645463325252;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (uint32_t)(state >> 32) % bound;
}

static uint8_t bytes[4096];

// RFC 3720, appendix B.4, and the check value of the catalogues of checksums.
static void check_published_checksums(void) {
  uint8_t data[32];
  expect(ctidemark_crc32c(0, "", 0) == 0, "CRC-32C of nothing", 0, 0);
  expect(ctidemark_crc32c(0, "123456789", 9) == 0xe3069283, "CRC-32C of digits", 9, 0);
  memset(data, 0, 32);
  expect(ctidemark_crc32c(0, data, 32) == 0x8a9136aa, "CRC-32C of zeros", 32, 0);
  memset(data, 0xff, 32);
  expect(ctidemark_crc32c(0, data, 32) == 0x62a8ab43, "CRC-32C of ones", 32, 0);
  for (int i = 0; i < 32; i++) data[i] = (uint8_t)i;
  expect(ctidemark_crc32c(0, data, 32) == 0x46dd794e, "CRC-32C upwards", 32, 0);
  for (int i = 0; i < 32; i++) data[i] = (uint8_t)(31 - i);
  expect(ctidemark_crc32c(0, data, 32) == 0x113fdb5c, "CRC-32C downwards", 32, 0);
  const uint8_t command[48] = {[0] = 0x01, [1] = 0xc0, [16] = 0x14, [22] = 0x04,
                               [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
  expect(ctidemark_crc32c(0, command, 48) == 0xd9963a56, "CRC-32C of a read command", 48, 0);
}

// One bit at a time, as the polynomial's definition says.
static uint32_t reference_checksum(uint32_t crc, uint8_t byte) {
  crc ^= byte;
  for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
  return crc;
}

static void check_checksums(void) {
  for (size_t offset = 0; offset <= 8; offset++) {
    const uint8_t *start = bytes + offset;
    uint32_t right = 0xffffffff;
    for (size_t count = 0; count <= 300; count++) {
      size_t split = random_below((uint32_t)count + 1);
      uint32_t whole = ctidemark_crc32c(0, start, count);
      uint32_t first = ctidemark_crc32c(0, start, split);
      expect(whole == ~right, "CRC-32C", count, offset);
      expect(ctidemark_crc32c(first, start + split, count - split) == whole, "CRC-32C in two parts",
             count, split);
      expect(crc32c_portable(0xffffffff, start, count) == right, "portable CRC-32C", count, offset);
      if (has_crc32c()) {
        expect(crc32c_hardware(0xffffffff, start, count) == right, "CRC-32C by instructions", count,
               offset);
      }
      right = reference_checksum(right, start[count]);
    }
  }
}

// The hash of `repeats` copies of a text, as 64 hexadecimal digits.
static int hash_is(const char *text, int repeats, int is_portable, const char *expected) {
  ctidemark_sha256 hash;
  uint8_t digest[32];
  char digits[65];
  ctidemark_sha256_begin(&hash, is_portable);
  for (int i = 0; i < repeats; i++) ctidemark_sha256_add(&hash, text, strlen(text));
  ctidemark_sha256_finish(&hash, digest);
  for (int i = 0; i < 32; i++) snprintf(digits + 2 * i, 3, "%02x", digest[i]);
  return strcmp(digits, expected) == 0;
}

// The examples that NIST publishes for FIPS 180-4, the million letters in pieces of 50, and the
// hash of no bytes.
static void check_published_hashes(int is_portable) {
  static const struct {
    const char *text, *hash;
    int repeats;
  } examples[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 1},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 1},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", 1},
      {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", 20000},
  };
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    expect(hash_is(examples[i].text, examples[i].repeats, is_portable, examples[i].hash),
           "SHA-256 of an example", i, (size_t)is_portable);
  }
}

static void check_hashes(void) {
  for (int round = 0; round < 2000; round++) {
    size_t start = random_below(16);
    size_t count = random_below(round % 4 == 0 ? sizeof bytes - 16 : 200);
    ctidemark_sha256 portable, pieces;
    uint8_t expected[32], digest[32];
    ctidemark_sha256_begin(&portable, 1);
    ctidemark_sha256_add(&portable, bytes + start, count);
    ctidemark_sha256_finish(&portable, expected);
    ctidemark_sha256_begin(&pieces, 0);
    for (size_t done = 0, part; done < count; done += part) {
      part = 1 + random_below((uint32_t)(count - done));
      ctidemark_sha256_add(&pieces, bytes + start + done, part);
    }
    ctidemark_sha256_finish(&pieces, digest);
    expect(memcmp(digest, expected, 32) == 0, "SHA-256 in pieces", count, start);
  }
}

int main(int count, char **arguments) {
  const char *how = count > 1 ? arguments[1] : "any";
  hides = strcmp(how, "hidden") == 0;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)random_below(256);
  check_published_checksums();
  check_checksums();
  check_published_hashes(0);
  check_published_hashes(1);
  check_hashes();
  ctidemark_sha256 hash;
  ctidemark_sha256_begin(&hash, 0);
  int has_both = has_crc32c() && !hash.is_portable;
  if (strcmp(how, "required") == 0) expect(has_both, "instructions are not found", 0, 0);
  if (hides) expect(!has_crc32c() && hash.is_portable, "instructions are not hidden", 0, 0);
  printf("  CRC-32C %s, SHA-256 %s: %s\n", has_crc32c() ? "by instructions" : "portable",
         hash.is_portable ? "portable" : "by instructions", failures ? "FAILED" : "right");
  return failures > 0;
}
