/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fields of aarch64's instructions, and where they lead: shared by the two files that decode it.
 * Encodings: Arm Architecture Reference Manual, C4.1.
 */
#include "symbolizer/indexer/code/decoder.h"

enum { A64_BYTES = 4, A64_X30 = 30, A64_R31 = 31 /* sp or xzr */ };

/* COUNT bits of WORD from bit LOW on. */
static inline uint32_t a64_bits(uint32_t word, unsigned int low, unsigned int count)
{
	return word >> low & ((1U << count) - 1);
}

/* As a signed number. */
static inline int32_t a64_signed(uint32_t word, unsigned int low, unsigned int count)
{
	const int32_t sign = 1 << (count - 1);

	return ((int32_t)a64_bits(word, low, count) ^ sign) - sign;
}

/*
 * Where WORD leads to, which is at ADDRESS. A word that the architecture does not define has a
 * flow, too: CODE_PLAIN, unless it is in the class of branches.
 */
struct code_instruction a64_flow(uint32_t word, uint64_t address);
/* Whether the class of WORD has instructions. */
bool a64_is_defined(uint32_t word);
