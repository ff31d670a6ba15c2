/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that leave the CPU and run again, and unfinished walks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/events.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "tests/unit/perf_ring.h"

enum { TIME = 1234 };

struct fixture {
	struct perf_ring w;
	struct metrics metrics;
	struct events events;
	unsigned int calls;
	uint64_t time_ns;
	struct abi_switch_out switch_out;
	struct abi_wake wake;
	struct abi_unfinished unfinished;
	uint8_t last_stack_byte;
	struct abi_chunk chunk;
	struct abi_returns returns;
	abi_u64 last_deep;
};

static void saw_switch_out(void *context, uint64_t time_ns, const struct abi_switch_out *switch_out)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->switch_out = *switch_out;
}

static void saw_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->wake = *wake;
}

static void saw_unfinished(void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	struct fixture *f = context;

	f->calls++;
	f->time_ns = time_ns;
	f->unfinished = *unfinished;
	f->last_stack_byte = unfinished->stack[unfinished->rest.stack_bytes - 1];
	if (unfinished->rest.deep_count)
		memcpy(&f->last_deep,
			unfinished->stack + unfinished->rest.stack_bytes +
				(unfinished->rest.deep_count - 1U) * sizeof(f->last_deep),
			sizeof(f->last_deep));
}

static void saw_returns(void *context, const struct abi_returns *returns)
{
	struct fixture *f = context;

	f->calls++;
	f->returns = *returns;
}

static void saw_chunk(void *context, const struct abi_chunk *chunk)
{
	struct fixture *f = context;

	f->calls++;
	f->chunk = *chunk;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	perf_ring_init(&f->w, 0);
	f->events.metrics = &f->metrics;
	f->events.probes = probes_all;
	f->events.handlers = (struct collect_handlers){
		.switch_out = saw_switch_out,
		.wake = saw_wake,
		.unfinished = saw_unfinished,
		.chunk = saw_chunk,
		.returns = saw_returns,
		.context = f,
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* Hands over a copy that ends where the record ends, so that sanitizers see reads past it. */
static void deliver(struct fixture *f)
{
	uint8_t *copy;

	perf_ring_end(&f->w);
	copy = malloc(f->w.size);
	assert_non_null(copy);
	memcpy(copy, f->w.record, f->w.size);
	events_deliver(&f->events, TIME, copy, f->w.size);
	free(copy);
}

static uint64_t bad(const struct fixture *f)
{
	return metrics_get(&f->metrics, METRIC_LOST_BAD_RECORD);
}

static void expect_refused(struct fixture *f)
{
	deliver(f);
	assert_int_equal(f->calls, 0);
	assert_int_equal(bad(f), 1);
}

static void switch_out_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct abi_switch_out switch_out = {
		.sample = { .kind = ABI_SWITCH_OUT, .tgid = 7, .comm = "0123456789abcde" },
		.left_ns = 1 << 30,
	};

	perf_ring_raw(&f->w, TIME, &switch_out, sizeof(switch_out));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->time_ns, TIME);
	assert_memory_equal(&f->switch_out, &switch_out, sizeof(switch_out));
	assert_int_equal(bad(f), 0);
}

static void wake_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct abi_wake wake = {
		.kind = ABI_WAKE, .window = 3, .tgid = 7, .tid = 8, .left_ns = 1, .wait_ns = 1 << 30
	};

	perf_ring_raw(&f->w, TIME, &wake, sizeof(wake));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->time_ns, TIME);
	assert_memory_equal(&f->wake, &wake, sizeof(wake));
	assert_int_equal(bad(f), 0);
}

static void short_wake_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_wake wake = { .kind = ABI_WAKE };

	perf_ring_raw(&f->w, TIME, &wake, sizeof(wake) - 8);
	expect_refused(f);
}

/* A switch whose unfinished walk claims STACK_BYTES of stack, of which THERE follow. */
static void write_unfinished(struct fixture *f, uint32_t stack_bytes, size_t there)
{
	static const uint8_t stack[2 * ABI_UNFINISHED_CHUNK_BYTES] = {
		[sizeof(stack) - 1] = 0x5a,
	};
	struct abi_unfinished u = {
		.switch_out = { .sample = { .kind = ABI_SWITCH_OUT,
					.flags = ABI_SAMPLE_UNFINISHED,
					.tid = 8 },
			.left_ns = 99 },
		.rest = { .stack_bytes = stack_bytes },
	};
	uint8_t bytes[sizeof(u) + sizeof(stack)];

	memcpy(bytes, &u, sizeof(u));
	memcpy(bytes + sizeof(u), stack, there);
	perf_ring_raw(&f->w, TIME, bytes, (uint32_t)(sizeof(u) + there));
}

static void unfinished_walk_is_delivered_with_its_stack(void **state)
{
	struct fixture *f = *state;

	write_unfinished(f, 2 * ABI_UNFINISHED_CHUNK_BYTES, 2 * ABI_UNFINISHED_CHUNK_BYTES);
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->unfinished.sample.kind, ABI_SWITCH_OUT);
	assert_int_equal(f->unfinished.switch_out.left_ns, 99);
	assert_int_equal(f->last_stack_byte, 0x5a);
	assert_int_equal(bad(f), 0);
}

static void unfinished_walk_goes_to_its_kind_where_nobody_finishes_it(void **state)
{
	struct fixture *f = *state;

	f->events.handlers.unfinished = NULL;
	write_unfinished(f, ABI_UNFINISHED_CHUNK_BYTES, ABI_UNFINISHED_CHUNK_BYTES);
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->switch_out.sample.tid, 8);
	assert_int_equal(f->switch_out.left_ns, 99);
	assert_int_equal(bad(f), 0);
}

static void unfinished_walk_with_half_its_stack_is_refused(void **state)
{
	struct fixture *f = *state;

	write_unfinished(f, 2 * ABI_UNFINISHED_CHUNK_BYTES, ABI_UNFINISHED_CHUNK_BYTES);
	expect_refused(f);
}

static void unfinished_walk_with_part_of_a_chunk_is_refused(void **state)
{
	struct fixture *f = *state;

	write_unfinished(f, 8, 8);
	expect_refused(f);
}

/* As write_unfinished(), of a stack with COUNT chunks behind it, of which THERE ids follow. */
static void write_deep(struct fixture *f, uint32_t stack_bytes, uint16_t count, size_t there)
{
	static struct {
		struct abi_unfinished head;
		uint8_t stack[ABI_UNFINISHED_STACK_BYTES];
		abi_u64 deep[ABI_DEEP_CHUNKS + 1];
	} u;
	uint8_t *ids = (uint8_t *)&u + sizeof(u.head) + stack_bytes;

	u.head = (struct abi_unfinished){
		.switch_out = { .sample = { .kind = ABI_SWITCH_OUT,
					.flags = ABI_SAMPLE_UNFINISHED } },
		.rest = { .stack_bytes = stack_bytes, .deep_count = count },
	};
	memset(ids, 0x77, there * sizeof(abi_u64));
	perf_ring_raw(&f->w, TIME, &u,
		(uint32_t)(sizeof(u.head) + stack_bytes + there * sizeof(abi_u64)));
}

static void unfinished_walk_of_a_deep_stack_has_the_ids_of_its_chunks(void **state)
{
	struct fixture *f = *state;

	write_deep(f, ABI_UNFINISHED_STACK_BYTES, ABI_DEEP_CHUNKS, ABI_DEEP_CHUNKS);
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->unfinished.rest.deep_count, ABI_DEEP_CHUNKS);
	assert_true(f->last_deep == UINT64_C(0x7777777777777777));
	assert_int_equal(bad(f), 0);
}

static void too_many_chunks_are_refused(void **state)
{
	struct fixture *f = *state;

	write_deep(f, ABI_UNFINISHED_STACK_BYTES, ABI_DEEP_CHUNKS + 1, ABI_DEEP_CHUNKS + 1);
	expect_refused(f);
}

static void chunks_behind_a_gap_are_refused(void **state)
{
	struct fixture *f = *state;

	write_deep(f, ABI_UNFINISHED_CHUNK_BYTES, 1, 1);
	expect_refused(f);
}

static void missing_ids_of_chunks_are_refused(void **state)
{
	struct fixture *f = *state;

	write_deep(f, ABI_UNFINISHED_STACK_BYTES, 8, 4);
	expect_refused(f);
}

static void chunk_is_delivered(void **state)
{
	struct fixture *f = *state;
	struct abi_chunk chunk = { .kind = ABI_CHUNK, .id = 5, .bytes = { [1023] = 0x5a } };

	perf_ring_raw(&f->w, TIME, &chunk, sizeof(chunk));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_memory_equal(&f->chunk, &chunk, sizeof(chunk));
	assert_int_equal(bad(f), 0);
}

static void short_chunk_is_refused(void **state)
{
	struct fixture *f = *state;
	struct abi_chunk chunk = { .kind = ABI_CHUNK };

	perf_ring_raw(&f->w, TIME, &chunk, sizeof(chunk) - 8);
	expect_refused(f);
}

static void write_returns(struct fixture *f, uint32_t count, size_t bytes)
{
	struct abi_returns r = {
		.kind = ABI_RETURNS_RECORD, .tid = 7, .sp = 0x7ffd00, .count = count, .words = 9
	};

	for (uint32_t i = 0; i < ABI_RETURNS; i++)
		r.of[i] = (struct abi_return){ .word = i, .code = 100 + i };
	perf_ring_raw(&f->w, TIME, &r, bytes);
}

static void returns_are_delivered(void **state)
{
	struct fixture *f = *state;

	write_returns(f, 3, offsetof(struct abi_returns, of[3]));
	deliver(f);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->returns.tid, 7);
	assert_int_equal(f->returns.sp, 0x7ffd00);
	assert_int_equal(f->returns.count, 3);
	assert_int_equal(f->returns.of[2].word, 2);
	assert_int_equal(f->returns.of[2].code, 102);
	assert_int_equal(bad(f), 0);
}

static void short_returns_are_refused(void **state)
{
	struct fixture *f = *state;

	write_returns(f, 3, offsetof(struct abi_returns, of[3]) - 8);
	expect_refused(f);
}

static void more_returns_than_possible_are_refused(void **state)
{
	struct fixture *f = *state;

	write_returns(f, ABI_RETURNS + 1, sizeof(struct abi_returns));
	expect_refused(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(switch_out_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(wake_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(short_wake_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			unfinished_walk_is_delivered_with_its_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(
			unfinished_walk_goes_to_its_kind_where_nobody_finishes_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			unfinished_walk_with_half_its_stack_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			unfinished_walk_with_part_of_a_chunk_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			unfinished_walk_of_a_deep_stack_has_the_ids_of_its_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many_chunks_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(chunks_behind_a_gap_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_ids_of_chunks_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(chunk_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(short_chunk_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(returns_are_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(short_returns_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			more_returns_than_possible_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
