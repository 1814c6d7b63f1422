#pragma once
#if !__has_include(<zstd.h>)
#error "zstd is missing: install libzstd-dev, or build with the package's trait BundledZstd"
#endif
#include <zstd.h>
#include <zdict.h>
