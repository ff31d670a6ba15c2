/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finishes a walk that the kernel began: the same step over the same tables, on the piece of stack
 * in the sample instead of the process's memory. Loads the pages that the kernel missed, so that
 * the next walk finds them there.
 */
#include <string.h>

#include "agent/sampler/unwind/guess.h"
#include "agent/sampler/unwind/unwind.h"
#include "agent/sampler/unwind/unwind_internal.h"
#include "base/cleanup.h"
#include "bpf/unwind/step.bpf.h"
#include "symbolizer/index/unwind.h"

static enum unwind_place without_table(const struct index *index)
{
	if (index_keeps_fp(index))
		return UNWIND_PLACE_KEEPS_FP;
	return index_unwind_page_count(index) ? UNWIND_PLACE_GAP : UNWIND_PLACE_NO_TABLES;
}

/* Finds the rule for PC in MAPPING, whose index is ready. */
static enum unwind_place look_up(struct unwind *u, const struct mapping *mapping,
	const struct index *index, uint64_t pc, struct abi_unwind_rule *ret_rule)
{
	const struct page_module *module;
	const struct abi_unwind_page *page;
	uint64_t elf_addr, number;
	size_t segment, size;

	if (!index_address(index, mapping_file_off(mapping, pc), &elf_addr, &segment) ||
		!index_unwind_page(index, elf_addr, &page, &size))
		return without_table(index);
	if (!pages_module(&u->pages, mapping->module->number, index, &module)) {
		number = (elf_addr >> ABI_UNWIND_PAGE_SHIFT) - module->first_page;
		if (number < module->slot_count)
			pages_want(&u->pages, module->first_slot + (uint32_t)number);
	}
	if (!unwind_rule_at(page, size, elf_addr & ((1U << ABI_UNWIND_PAGE_SHIFT) - 1), ret_rule) ||
		ret_rule->cfa == ABI_CFA_NONE)
		return without_table(index);
	return UNWIND_PLACE_TABLE;
}

enum unwind_place unwind_place_of(struct unwind *u, const struct mappings *mappings, uint64_t pc,
	struct abi_unwind_rule *ret_rule, const struct mapping **ret_waits)
{
	const struct mapping *mapping = mappings_find(mappings, pc);
	const struct unwind_options *options = &u->options;
	const struct index *index = NULL;

	if (!mapping)
		return UNWIND_PLACE_UNKNOWN;
	if (mapping->module->kind != MODULE_FILE && mapping->module->kind != MODULE_VDSO)
		return UNWIND_PLACE_UNKNOWN;
	switch (options->module(options->context, mapping->module, &index)) {
	case UNWIND_MODULE_WAITING:
		*ret_waits = mapping;
		return UNWIND_PLACE_GAP;
	case UNWIND_MODULE_NONE:
		return UNWIND_PLACE_NO_TABLES;
	case UNWIND_MODULE_READY:
		break;
	}
	return look_up(u, mapping, index, pc, ret_rule);
}

/* The pieces of the process's memory that the sample has. */
static const struct unwind_memory *pieces_of(
	const struct abi_unwind_rest *rest, const uint8_t *bytes, struct unwind_memory pieces[3])
{
	uint32_t room = MIN(rest->other_room, rest->stack_bytes);

	pieces[0] = (struct unwind_memory){
		.address = rest->stack_address,
		.size = rest->stack_bytes - room,
		.bytes = bytes + room,
		.next = &pieces[1],
	};
	pieces[1] = (struct unwind_memory){
		.address = rest->other_address,
		.size = MIN(rest->other_bytes, room),
		.bytes = bytes,
		.next = &pieces[2],
	};
	pieces[2] = (struct unwind_memory){
		.address = rest->fiber.address,
		.size = rest->fiber.address ? sizeof(rest->fiber_head) : 0,
		.bytes = (const uint8_t *)rest->fiber_head,
	};
	return pieces;
}

/* Adds a caller; false at the limit. */
static bool add_frame(struct unwind_stack *stack, uint32_t *steps, uint64_t pc)
{
	uint64_t *outer = stack->frames + ABI_INNER_FRAMES;

	if (++*steps > ABI_WALK_FRAMES)
		return false;
	if (stack->count < ABI_MAX_FRAMES) {
		stack->frames[stack->count++] = pc;
		return true;
	}
	/* A runtime's frames take two words: there is no place between them. */
	if (stack->flags & ABI_STACK_RUNTIME_FRAMES)
		return false;
	memmove(outer, outer + 1, (ABI_OUTER_FRAMES - 1) * sizeof(*outer));
	outer[ABI_OUTER_FRAMES - 1] = pc;
	stack->flags |= ABI_STACK_MIDDLE;
	return true;
}

/*
 * Looks for the caller of code without a table, where the kernel left STATE. Returns true, with
 * STATE and STACK moved to it, if it is proved.
 */
static bool finish_guess(struct guess *guess, struct unwind_state *state,
	struct unwind_stack *stack, uint32_t *steps)
{
	if (stack->flags & ABI_STACK_RUNTIME_FRAMES || stack->count >= ABI_INNER_FRAMES ||
		!guess_caller(guess, state))
		return false;
	stack->guessed = stack->count;
	return add_frame(stack, steps, unwind_recorded(state));
}

const struct mapping *unwind_finish(struct unwind *u, const struct mappings *mappings,
	const struct unwind_copied *copied, bool force, struct unwind_stack *stack)
{
	const struct abi_unwind_rest *rest = copied->rest;
	struct unwind_memory pieces[3];
	struct unwind_state state = {
		.memory = pieces_of(rest, copied->bytes, pieces),
		.pc = rest->pc,
		.sp = rest->sp,
		.fp = rest->fp,
		.lr = rest->lr,
		.kept = { rest->kept[0], rest->kept[1] },
		.has_own = rest->has_own <= 2 ? rest->has_own : 0,
		.is_return = rest->is_return ? 1 : 0,
		.runs = rest->fiber,
	};
	struct guess guess = { .unwind = u, .mappings = mappings, .returns = copied->returns };
	uint32_t steps = stack->count;

	memcpy(state.own, rest->own, sizeof(state.own));
	stack->end = ABI_UNWIND_GOES_ON;
	stack->guessed = 0;
	for (;;) {
		struct abi_unwind_rule rule = { 0 };
		const struct mapping *waits = NULL;
		enum unwind_place place =
			unwind_place_of(u, mappings, state.pc - state.is_return, &rule, &waits);

		if (!waits && place == UNWIND_PLACE_GAP && guess.returns && state.sp == rest->sp) {
			if (finish_guess(&guess, &state, stack, &steps))
				continue;
			waits = guess.waits;
		}
		/* By frame pointer, the walk might skip the caller. */
		if (waits) {
			stack->end = force ? ABI_UNWIND_NOT_LOADED : ABI_UNWIND_MISSED;
			return force ? NULL : waits;
		}
		stack->end = (enum abi_unwind_end)unwind_step_from(&state, place, &rule);
		if (stack->end != ABI_UNWIND_GOES_ON)
			return NULL;
		if (!add_frame(stack, &steps, unwind_recorded(&state))) {
			stack->end = ABI_UNWIND_DEPTH;
			return NULL;
		}
	}
}
