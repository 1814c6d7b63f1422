// What the sources use of mach-o/dyld.h, which Apple's modules have as MachO.dyld.

#include <stdint.h>

extern int _NSGetExecutablePath(char *buf, uint32_t *bufsize);
