/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/effect.h"

#include <elf.h>
#include <errno.h>

#include "symbolizer/indexer/code/effect_state.h"

int code_effects_create(uint16_t machine, struct code_effects **ret_effects)
{
	switch (machine) {
	case EM_X86_64:
		return effect_machine_x86_64.create(ret_effects);
	case EM_AARCH64:
		return effect_machine_aarch64.create(ret_effects);
	default:
		return -EOPNOTSUPP;
	}
}

void code_effects_destroy(struct code_effects *effects)
{
	if (effects)
		effects->machine->destroy(effects);
}

bool code_effect(const struct code_effects *effects, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_flow, struct code_effect *ret_effect)
{
	return effects->machine->decode(effects, bytes, left, address, ret_flow, ret_effect);
}
