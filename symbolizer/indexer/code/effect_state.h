/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by effect.c and the files of the two machines. */
#include "symbolizer/indexer/code/effect.h"

/* What a machine's file implements. */
struct effect_machine {
	int (*create)(struct code_effects **ret_effects);
	void (*destroy)(struct code_effects *effects);
	bool (*decode)(const struct code_effects *effects, const uint8_t *bytes, size_t left,
		uint64_t address, struct code_instruction *ret_flow,
		struct code_effect *ret_effect);
};

/* The machine's own decoder begins with it. */
struct code_effects {
	const struct effect_machine *machine;
};

extern const struct effect_machine effect_machine_x86_64, effect_machine_aarch64;
