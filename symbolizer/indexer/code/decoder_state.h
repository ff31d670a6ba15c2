/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by decoder.c and the files of the two machines. */
#include "symbolizer/indexer/code/decoder.h"

/* What a machine's file implements. */
struct code_machine {
	const char *library; /* name of the shared object */
	/* Whether the loaded library is the one that this file was compiled with. */
	bool (*fits)(void);
	int (*create)(struct code_decoder **ret_decoder);
	void (*destroy)(struct code_decoder *decoder);
	bool (*decode)(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
		uint64_t address, struct code_instruction *ret_instruction);
	uint8_t skippable; /* prefix; 0 = none */
};

/* The machine's own decoder begins with it. */
struct code_decoder {
	const struct code_machine *machine;
};

extern const struct code_machine code_machine_x86_64, code_machine_aarch64;

/* A function of a loaded library; NULL if it is not loaded. */
void *code_symbol(const char *name);
