#include <zdict.h>
