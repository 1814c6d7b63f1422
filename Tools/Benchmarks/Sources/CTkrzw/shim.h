#include <tkrzw_langc.h>
