/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/bare_entry.h"

#include "base/cleanup.h"

enum { ENTRY_CALLS = 8, ENTRY_STEPS = 16 /* of work, for an instruction */ };

static bool entry_goes_on(enum code_kind kind)
{
	return kind == CODE_PLAIN || kind == CODE_NOP || kind == CODE_CALL || kind == CODE_BRANCH;
}

uint64_t bare_entry_end(const struct bare *b, uint64_t low, uint64_t high)
{
	struct cursor code = elf_image_at(b->image, low, high - low);
	uint64_t calls[ENTRY_CALLS], at = low;
	size_t count = 0, left = code.bad ? 0 : cursor_left(&code);

	while (at < high && left && work_spend(b->work, ENTRY_STEPS)) {
		struct code_instruction flow;
		struct code_effect effect;

		for (size_t i = 0; i < count; i++)
			if (calls[i] == at)
				return at;
		if (!code_effect(b->effects, code.at + (at - low), left, at, &flow, &effect))
			return at;
		at += flow.size;
		left -= flow.size;
		if (!entry_goes_on(flow.kind))
			return at;
		if (flow.kind == CODE_CALL && count < ENTRY_CALLS)
			calls[count++] = flow.target;
	}
	return high;
}
