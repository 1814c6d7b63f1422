// The few things that Swift cannot say itself or says differently from system to system: the
// processor's CRC and prefetch instructions, threads, directories, and large tables.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "folding.h"

/// CRC-32C (Castagnoli) of `count` bytes, continuing from `crc` (0 to begin).
uint32_t ctidemark_crc32c(uint32_t crc, const void *bytes, size_t count);

/// SHA-256 (FIPS 180-4) of bytes that come piece by piece.
typedef struct {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[64];
  int is_portable;
} ctidemark_sha256;

/// Begins; with `is_portable` the processor's own instructions for SHA-256 are left unused.
void ctidemark_sha256_begin(ctidemark_sha256 *hash, int is_portable);
void ctidemark_sha256_add(ctidemark_sha256 *hash, const void *bytes, size_t count);
/// Writes the 32 bytes of the hash; nothing can be added after that.
void ctidemark_sha256_finish(ctidemark_sha256 *hash, void *digest);

/// Asks the processor to bring what lies at an address into its cache. Any address will do.
static inline void ctidemark_prefetch(const void *address) { __builtin_prefetch(address); }

/// A mutex with a condition.
typedef struct ctidemark_monitor ctidemark_monitor;

/// A new monitor; null when memory runs out.
ctidemark_monitor *ctidemark_monitor_create(void);
void ctidemark_monitor_destroy(ctidemark_monitor *monitor);
void ctidemark_monitor_lock(ctidemark_monitor *monitor);
void ctidemark_monitor_unlock(ctidemark_monitor *monitor);
/// Gives the mutex up, waits to be woken, takes it again. May return for no reason.
void ctidemark_monitor_wait(ctidemark_monitor *monitor);
/// The same for `nanoseconds` at most.
void ctidemark_monitor_wait_for(ctidemark_monitor *monitor, uint64_t nanoseconds);
void ctidemark_monitor_signal(ctidemark_monitor *monitor);
void ctidemark_monitor_broadcast(ctidemark_monitor *monitor);

/// A thread that is neither joined nor detached yet.
typedef struct ctidemark_thread ctidemark_thread;

/// Starts a thread that calls `body` with `argument`, and that lets others have the processor
/// first if `yields` is not 0.
/// Returns 0, or the system's error number, and then `body` is never called.
int ctidemark_thread_start(const char *name, size_t stack_bytes, int yields,
                           void (*body)(void *), void *argument, ctidemark_thread **thread);
/// Waits for the thread's end and frees the handle.
void ctidemark_thread_join(ctidemark_thread *thread);
/// Lets the thread run on and frees the handle.
void ctidemark_thread_detach(ctidemark_thread *thread);

/// An open directory.
typedef struct ctidemark_directory ctidemark_directory;

/// Opens a directory. Returns 0 or the system's error number.
int ctidemark_directory_open(const char *path, ctidemark_directory **directory);
/// The next name, valid until the next call; null at the end.
/// Returns 0 or the system's error number.
int ctidemark_directory_next(ctidemark_directory *directory, const char **name);
void ctidemark_directory_close(ctidemark_directory *directory);
