// Whether this processor has ARM's optional instructions for CRC-32 and SHA-256. Where every
// processor that the compiler builds for has them, nobody is asked; elsewhere the system is, once.
#pragma once

#if defined(__aarch64__)
#include <stdatomic.h>
#include <stddef.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>

// The names are those of "Determining instruction set characteristics" in Apple's documentation. A
// system that does not know a name reports an error, which counts as no.
typedef const char *arm_feature;
#define ARM_CRC32 "hw.optional.armv8_crc32"
#define ARM_SHA256 "hw.optional.arm.FEAT_SHA256"

static inline int arm_ask_system(arm_feature feature) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(feature, &value, &size, NULL, 0) == 0 && value != 0;
}
#elif defined(__linux__)
#include <sys/auxv.h>

// The kernel's HWCAP_CRC32 and HWCAP_SHA2; C libraries differ in the header that has the names.
typedef unsigned long arm_feature;
#define ARM_CRC32 (1ul << 7)
#define ARM_SHA256 (1ul << 6)

static inline int arm_ask_system(arm_feature feature) {
  return (getauxval(AT_HWCAP) & feature) != 0;
}
#else
typedef int arm_feature;
#define ARM_CRC32 0
#define ARM_SHA256 0

static inline int arm_ask_system(arm_feature feature) { return feature; }
#endif

// Keeps the answer: 0 is not asked yet, 1 no, 2 yes. The system says the same to every thread, so
// it does not matter which of them stores it, and no constructor has to run before the first call.
static inline int arm_has(arm_feature feature, atomic_int *answer) {
  int known = atomic_load_explicit(answer, memory_order_relaxed);
  if (known == 0) {
    known = arm_ask_system(feature) ? 2 : 1;
    atomic_store_explicit(answer, known, memory_order_relaxed);
  }
  return known == 2;
}

static inline int arm_has_crc32(void) {
#if defined(__ARM_FEATURE_CRC32)
  return 1;
#else
  static atomic_int answer;
  return arm_has(ARM_CRC32, &answer);
#endif
}

static inline int arm_has_sha256(void) {
#if defined(__ARM_FEATURE_SHA2)
  return 1;
#else
  static atomic_int answer;
  return arm_has(ARM_SHA256, &answer);
#endif
}
#endif
