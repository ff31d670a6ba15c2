/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Code whose unwind rule cannot be derived from what it does to the stack pointer, known
 * by its instructions. Compiled C libraries have call frame information for it; musl has none, nor
 * have libraries for coroutines.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known_code {
	uint8_t cfa; /* enum abi_cfa: the rule of all its instructions */
	uint8_t instructions; /* how many; nothing runs on behind the last one */
};

/* Whether such code of MACHINE (EM_*) begins at BYTES, of which LEFT are readable. */
bool known_code_at(
	uint16_t machine, const uint8_t *bytes, size_t left, struct known_code *ret_code);
