// glibc's settings of its allocator, which its Swift module leaves out.
#pragma once
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/// Has blocks of so many bytes and more mapped one by one, and given back when they are freed.
static inline void callocator_map_blocks(int bytes) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, bytes);
#endif
}
