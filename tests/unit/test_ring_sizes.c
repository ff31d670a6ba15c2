/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <unistd.h>

#include "agent/sampler/collect/ring_sizes.h"
#include "base/cleanup.h"
#include "bpf/abi/sample_ring.h"

static struct ring_sizes sizes_at(uint64_t hz)
{
	return ring_sizes_for(&(struct collect_options){ .frequency_hz = hz }, 1);
}

/* Room for a deep stack, unless there are many CPUs. */
static uint32_t least_pages(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) <= 64 ? 64 : 32;
}

/* Other architectures have no such rings. */
static void assert_own_bytes(uint32_t bytes, uint32_t expected)
{
	assert_int_equal(bytes, ABI_STORES_IN_ORDER ? expected : 0);
}

static void each_cpu_up_to_the_highest_has_one(void **state)
{
	struct ring_sizes sizes =
		ring_sizes_for(&(struct collect_options){ .frequency_hz = 19 }, 7);

	(void)state;
	assert_int_equal(sizes.own_count, ABI_STORES_IN_ORDER ? 8 : 0);
}

static void rings_grow_with_the_rate(void **state)
{
	(void)state;
	assert_own_bytes(sizes_at(19).own_bytes, 64 << 10);
	assert_own_bytes(sizes_at(97).own_bytes, 128 << 10);
	assert_own_bytes(sizes_at(999).own_bytes, 1 << 20);
	assert_int_equal(sizes_at(19).pages, least_pages());
	assert_int_equal(sizes_at(97).pages, 64);
}

static void period_says_the_rate_too(void **state)
{
	const struct collect_options options = { .period = 1000000000 / 97 };

	(void)state;
	assert_own_bytes(ring_sizes_for(&options, 1).own_bytes, 128 << 10);
}

static void rates_that_a_ring_cannot_hold_for_half_a_second_have_none(void **state)
{
	(void)state;
	assert_int_equal(sizes_at(10000).own_bytes, 0);
	assert_true(sizes_at(10000).pages > sizes_at(999).pages);
}

static void rings_of_perf_alone_are_had_for_the_asking(void **state)
{
	const struct collect_options options = { .frequency_hz = 97,
		.without = MECHANISM_OWN_RINGS };

	(void)state;
	assert_int_equal(ring_sizes_for(&options, 1).own_bytes, 0);
}

static void so_many_cpus_that_it_would_take_too_much_have_none(void **state)
{
	const struct collect_options options = { .frequency_hz = 97 };

	(void)state;
	assert_own_bytes(ring_sizes_for(&options, 1023).own_bytes, 128 << 10);
	assert_int_equal(ring_sizes_for(&options, 1024).own_bytes, 0);
}

/* Some or all of the switches are recorded: up to 4 MiB of them, less on large machines. */
static void rings_grow_with_the_share_of_waits(void **state)
{
	struct collect_options options = { .frequency_hz = 19, .off_cpu_share = 0 };
	uint32_t none = ring_sizes_for(&options, 1).pages, half, all;

	(void)state;
	options.off_cpu_share = 0.5;
	half = ring_sizes_for(&options, 1).pages;
	options.off_cpu_share = 1;
	all = ring_sizes_for(&options, 1).pages;
	assert_int_equal(none, least_pages());
	assert_true(all > none && all <= 2048);
	assert_int_equal(all, 2 * half);
	options.frequency_hz = 1000000;
	assert_int_equal(ring_sizes_for(&options, 1).pages, 2048);
}

/* 256 KiB are all that is shipped of a stack. */
static void recordings_have_room_for_the_deepest_stack(void **state)
{
	struct collect_options options = { .frequency_hz = 97 };
	uint32_t always = ring_sizes_for(&options, 1).stack_bytes;

	(void)state;
	assert_true(always < 256 << 10);
	options.ends_soon = true;
	if (sysconf(_SC_NPROCESSORS_ONLN) <= 64)
		assert_true(ring_sizes_for(&options, 1).stack_bytes > 260 << 10);
	else
		assert_int_equal(ring_sizes_for(&options, 1).stack_bytes, always);
}

/* Samples are in such a ring, too. */
static void pieces_have_a_third_of_a_ring_that_the_rate_made_large(void **state)
{
	struct ring_sizes sizes = sizes_at(10000);

	(void)state;
	assert_int_equal(sizes.stack_bytes, sizes.pages * RING_SIZES_PAGE_BYTES / 3);
}

static void pieces_of_calls_have_half(void **state)
{
	const struct collect_options options = { .frequency_hz = 97, .call_stacks = true };
	struct ring_sizes sizes = ring_sizes_for(&options, 1);

	(void)state;
	assert_int_equal(sizes.stack_bytes, sizes.pages * RING_SIZES_PAGE_BYTES / 2);
}

static void size_that_was_asked_for_is_that_of_both(void **state)
{
	struct collect_options options = { .frequency_hz = 97, .ring_pages = 1 };

	(void)state;
	assert_int_equal(ring_sizes_for(&options, 1).pages, 1);
	assert_own_bytes(ring_sizes_for(&options, 1).own_bytes, ABI_RING_MIN_BYTES);
	options.ring_pages = 2048;
	assert_own_bytes(ring_sizes_for(&options, 1).own_bytes, ABI_RING_MAX_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_cpu_up_to_the_highest_has_one),
		cmocka_unit_test(rings_grow_with_the_rate),
		cmocka_unit_test(period_says_the_rate_too),
		cmocka_unit_test(rates_that_a_ring_cannot_hold_for_half_a_second_have_none),
		cmocka_unit_test(rings_of_perf_alone_are_had_for_the_asking),
		cmocka_unit_test(so_many_cpus_that_it_would_take_too_much_have_none),
		cmocka_unit_test(rings_grow_with_the_share_of_waits),
		cmocka_unit_test(recordings_have_room_for_the_deepest_stack),
		cmocka_unit_test(pieces_have_a_third_of_a_ring_that_the_rate_made_large),
		cmocka_unit_test(pieces_of_calls_have_half),
		cmocka_unit_test(size_that_was_asked_for_is_that_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
