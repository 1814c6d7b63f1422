#pragma once

#include <stdint.h>

// The version of Unicode that the tables are of: major, minor and update, a byte each, and above
// them the number of what is made of it.
uint32_t ctidemark_folding_version(void);

// Combining class (bits 0 to 7), whether a scalar is a mark (8), whether it is a letter after which
// marks are dropped (9), and how many scalars its canonical decomposition (12 to 15) and its folded
// form (16 to 19) have; 0 where that is the scalar itself. What it is in a word (20 to 22): 0 nothing,
// 1 a letter or digit, 2 a mark, 3 a word of its own, 4 unseen, so that texts are equal without it.
uint32_t ctidemark_folding_properties(uint32_t scalar);

// One scalar of the full canonical decomposition, and of the folded form's.
uint32_t ctidemark_folding_decomposed(uint32_t scalar, uint32_t position);
uint32_t ctidemark_folding_folded(uint32_t scalar, uint32_t position);

