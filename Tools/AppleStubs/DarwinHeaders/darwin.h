// What Darwin has and Glibc has not, for Tools/check-apple. Each declaration says in which of
// Apple's headers (MacOSX.sdk/usr/include) it stands.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// sys/fcntl.h
#define F_PREALLOCATE 42
#define F_FULLFSYNC 51
#define F_BARRIERFSYNC 85
#define F_ALLOCATECONTIG 0x00000002
#define F_ALLOCATEALL 0x00000004
#define F_PEOFPOSMODE 3

typedef struct fstore {
  unsigned int fst_flags;
  int fst_posmode;
  off_t fst_offset;
  off_t fst_length;
  off_t fst_bytesalloc;
} fstore_t;

// sys/mman.h
#define MADV_FREE_REUSABLE 7
#define MADV_FREE_REUSE 8

// sys/mount.h, with 64-bit inodes; the names of the file system's kind and places are left out.
struct statfs {
  uint32_t f_bsize;
  int32_t f_iosize;
  uint64_t f_blocks;
  uint64_t f_bfree;
  uint64_t f_bavail;
  uint64_t f_files;
  uint64_t f_ffree;
};

int statfs(const char *path, struct statfs *buf);

// sys/sysctl.h
int sysctlbyname(
    const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen);
