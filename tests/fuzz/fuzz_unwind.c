/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk as in BPF, with arbitrary bytes as the pool and an arbitrary stack: it ends, and reads
 * nothing outside of them. If the bytes are a valid page, user space's lookup gives the same rules.
 */
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind/step.bpf.h"
#include "symbolizer/index/unwind.h"

enum {
	HEAD_BYTES = 32,
	STACK = 0x7ff000,
	OTHER_STACK = 0xc000,
	MAX_STACK_BYTES = 4096,
	MAX_STEPS = 256
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void compare_lookups(const uint8_t *region, uint32_t at, size_t size)
{
	const struct abi_unwind_page *page = (const void *)(region + at);

	if (!unwind_page_check(page, size))
		return;
	for (uint32_t offset = 0; offset < 0x10000; offset += 13) {
		struct abi_unwind_rule here, there;

		unwind_rule_of(
			region, at, unwind_row_number(unwind_row_at(region, at, offset)), &here);
		if (!unwind_rule_at(page, size, offset, &there) ||
			memcmp(&here, &there, sizeof(here)))
			abort();
	}
}

/* The pc selects the kind of place; the rule is whatever the region has there. */
static void walk(const uint8_t *region, uint32_t at, struct unwind_state *state)
{
	for (int step = 0; step < MAX_STEPS; step++) {
		enum unwind_place place = (enum unwind_place)(state->pc & 3);
		uint32_t offset = (uint32_t)(state->pc - state->is_return) & 0xffff;
		struct abi_unwind_rule rule;

		unwind_rule_of(
			region, at, unwind_row_number(unwind_row_at(region, at, offset)), &rule);
		if (unwind_step_from(state, place, &rule) != ABI_UNWIND_GOES_ON)
			return;
	}
}

/* The page's address, the registers and the stack's size; then the stack; then the region. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *region;
	uint32_t head[HEAD_BYTES / sizeof(uint32_t)], at;
	struct unwind_memory memory = { .address = STACK };
	struct unwind_memory other = { .address = OTHER_STACK };
	struct unwind_state state = { .memory = &memory };

	if (size < HEAD_BYTES)
		return 0;
	memcpy(head, bytes, sizeof(head));
	bytes += HEAD_BYTES;
	size -= HEAD_BYTES;
	memory.size = head[0] % (MAX_STACK_BYTES + 1) & ~7U;
	if (memory.size > size)
		memory.size = size & ~(size_t)7;
	memory.bytes = bytes;
	bytes += memory.size;
	size -= memory.size;
	at = head[1] & (ABI_UNWIND_REGION_BYTES - 1) & ~63U;
	region = calloc(1, ABI_UNWIND_REGION_BYTES);
	if (!region)
		return 0;
	if (size > ABI_UNWIND_REGION_BYTES - at)
		size = ABI_UNWIND_REGION_BYTES - at;
	memcpy(region + at, bytes, size);
	compare_lookups(region, at, size);
	state.pc = head[2];
	state.sp = STACK + head[3] % (MAX_STACK_BYTES + 64);
	state.fp = STACK + head[4] % (MAX_STACK_BYTES + 64);
	state.lr = head[5];
	state.is_return = head[6] & 1;
	/* The other stack has the same bytes; the goroutine is in one of the two. */
	other.size = memory.size;
	other.bytes = memory.bytes;
	memory.next = &other;
	state.runs.address = head[6] & 2 ? OTHER_STACK + head[7] % MAX_STACK_BYTES : 0;
	state.runs.thread = head[6] & 4 ? head[7] >> 16 : 0;
	walk(region, at, &state);
	free(region);
	return 0;
}
