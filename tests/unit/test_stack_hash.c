/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>

#include "bpf/abi/sampler.h"
#include "bpf/hash.bpf.h"

static uint64_t hash_of(const uint64_t *frames, uint32_t count, uint32_t flags)
{
	uint64_t hash = STACK_HASH_MUL_3;

	for (uint32_t i = 0; i < count; i++)
		hash = stack_hash_frame(hash, frames[i]);
	return stack_hash_end(hash, count, flags);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static size_t count_equal(uint64_t *ids, size_t count)
{
	size_t equal = 0;

	qsort(ids, count, sizeof(*ids), compare);
	for (size_t i = 1; i < count; i++)
		equal += ids[i] == ids[i - 1];
	return equal;
}

static void order_count_and_kind_matter(void **state)
{
	const uint64_t ab[] = { 0x401000, 0x402000 }, ba[] = { 0x402000, 0x401000 };
	const uint64_t zeros[] = { 0, 0, 0 };
	uint64_t ids[] = { hash_of(ab, 2, 0), hash_of(ba, 2, 0), hash_of(ab, 1, 0),
		hash_of(ab, 2, ABI_STACK_KERNEL), hash_of(ab, 2, ABI_STACK_DEPTH),
		hash_of(zeros, 0, 0), hash_of(zeros, 1, 0), hash_of(zeros, 2, 0),
		hash_of(zeros, 3, 0) };

	(void)state;
	assert_int_equal(count_equal(ids, sizeof(ids) / sizeof(ids[0])), 0);
	assert_true(ids[0] != 0);
}

/*
 * A million similar stacks, as of real programs: few functions, addresses that differ in few bits.
 * All ids differ, even in their lower 52 bits, where a good hash has a collision once in 8000 runs.
 */
static void a_million_similar_stacks_have_different_ids(void **state)
{
	enum { STACKS = 1 << 20 };
	uint64_t *ids = calloc(STACKS, sizeof(*ids));
	uint64_t frames[20];

	(void)state;
	assert_non_null(ids);
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t bit = 0; bit < 20; bit++)
			frames[bit] = 0x7f0000401000 + ((i >> bit) & 1 ? 16 : 0);
		ids[i] = hash_of(frames, 20, 0) & ((UINT64_C(1) << 52) - 1);
	}
	assert_int_equal(count_equal(ids, STACKS), 0);
	free(ids);
}

/* The slot is taken from the id's lowest bits, which must not follow the alignment of addresses. */
static void slots_are_spread(void **state)
{
	uint8_t *used = calloc(ABI_SEEN_SLOTS, 1);
	uint32_t distinct = 0;

	(void)state;
	assert_non_null(used);
	for (uint64_t i = 0; i < ABI_SEEN_SLOTS; i++) {
		uint64_t frames[] = { 0x401000 + i * 64, 0x400800 };

		used[hash_of(frames, 2, 0) & (ABI_SEEN_SLOTS - 1)] = 1;
	}
	for (uint32_t i = 0; i < ABI_SEEN_SLOTS; i++)
		distinct += used[i];
	/* 1 - 1/e of the slots, with some tolerance */
	assert_in_range(distinct, ABI_SEEN_SLOTS * 62 / 100, ABI_SEEN_SLOTS * 65 / 100);
	free(used);
}

static void tags_differ_by_window_and_are_never_empty(void **state)
{
	(void)state;
	assert_true(stack_tag(5, 1) != stack_tag(5, 2));
	assert_true(stack_tag(STACK_HASH_MUL_3, 1) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_count_and_kind_matter),
		cmocka_unit_test(a_million_similar_stacks_have_different_ids),
		cmocka_unit_test(slots_are_spread),
		cmocka_unit_test(tags_differ_by_window_and_are_never_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
