#ifndef ALLOCATION_COUNT_H
#define ALLOCATION_COUNT_H

#include <stdbool.h>

/// Whether allocations are counted in this build.
bool allocations_are_counted(void);

/// How often the calling thread has asked for memory so far.
unsigned long allocation_count(void);

#endif
