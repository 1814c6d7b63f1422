#include "ctidemark.h"

#include <dirent.h>
#include <errno.h>

// `struct ctidemark_directory` stands for the system's DIR, whose entries vary in layout and
// are shorter than their declared type, so that copying one would read beyond its end.

int ctidemark_directory_open(const char *path, ctidemark_directory **directory) {
  DIR *stream = opendir(path);
  if (stream == NULL) return errno;
  *directory = (ctidemark_directory *)stream;
  return 0;
}

int ctidemark_directory_next(ctidemark_directory *directory, const char **name) {
  errno = 0;
  struct dirent *entry = readdir((DIR *)directory);
  *name = entry == NULL ? NULL : entry->d_name;
  return entry == NULL ? errno : 0;
}

void ctidemark_directory_close(ctidemark_directory *directory) {
  closedir((DIR *)directory);
}
