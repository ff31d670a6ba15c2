/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/runtimes/go.bpf.h"

/* The process's memory: words at addresses; everything else is not mapped. */
static struct {
	__u64 address, value;
} memory[32];
static size_t words, reads;

static void put(__u64 address, __u64 value)
{
	assert_true(words < sizeof(memory) / sizeof(memory[0]));
	memory[words].address = address;
	memory[words++].value = value;
}

long read_user(void *to, __u32 size, __u64 address)
{
	size_t found = 0;

	reads++;
	for (size_t i = 0; i < words; i++) {
		__u64 at = memory[i].address - address;

		if (memory[i].address < address || at >= size)
			continue;
		memcpy((char *)to + at, &memory[i].value, sizeof(__u64));
		found += sizeof(__u64);
	}
	return found == size ? 0 : -EFAULT;
}

static const struct abi_runtime_go how = {
	.g_tls_offset = (__u64)-8,
	.g_m = 48,
	.m_curg = 184,
	.g_goid = 152,
};

static __u64 goid_of(const struct abi_runtime_go *of, __u64 thread_pointer, __u32 *ret_error)
{
	struct runtime_thread thread;

	*ret_error = !go_read_thread(of,
		(struct runtime_place){
			.thread_pointer = thread_pointer, .state_register = 0xbad0 },
		&thread);
	return thread.fiber_id;
}

static int empty_memory(void **state)
{
	(void)state;
	words = reads = 0;
	return 0;
}

/* The head of goroutine G, of whose stack USED bytes are in use. */
static void put_head(__u64 g, __u64 used)
{
	for (__u32 i = 0; i <= ABI_GO_SCHED_SP; i++) {
		const __u64 word = i == ABI_GO_STACK_HIGH ? 0xa000
				   : i == ABI_GO_SCHED_SP ? 0xa000 - used
							  : 0x3300 + i;

		put(g + 8 * (__u64)i, word);
	}
}

/* A thread with g G, whose m has G0 and CURG. USED: of CURG's stack, 0 = its head is not there. */
static void put_m(__u64 g, __u64 g0, __u64 curg, __u64 used)
{
	put(0x1000 - 8, g);
	put(g + 48, 0xd000);
	put(0xd000, g0);
	put(0xd000 + 184, curg);
	if (used)
		put_head(curg, used);
}

static void goroutine_on_its_own_stack(void **state)
{
	__u32 error = 7;

	(void)state;
	put(0x1000 - 8, 0xc000);
	put(0xc000 + 48, 0xd000);
	put(0xd000 + 184, 0xc000);
	put(0xc000 + 152, 17);
	assert_int_equal(goid_of(&how, 0x1000, &error), 17);
	assert_int_equal(error, 0);
}

static void goroutine_and_its_m_come_with_the_id(void **state)
{
	struct runtime_thread thread;

	(void)state;
	put_m(0xe000, 0xe000, 0xc000, 200);
	put(0xc000 + 152, 17);
	assert_true(
		go_read_thread(&how, (struct runtime_place){ .thread_pointer = 0x1000 }, &thread));
	assert_int_equal(thread.fiber.thread, 0xd000);
	assert_int_equal(thread.fiber.address, 0xc000);
}

static void system_stack_has_the_id_of_its_goroutine(void **state)
{
	__u32 error = 7;

	(void)state;
	put_m(0xe000, 0xe000, 0xc000, 200);
	put(0xe000 + 152, 0); /* g0's own goid */
	put(0xc000 + 152, 18);
	assert_int_equal(goid_of(&how, 0x1000, &error), 18);
	assert_int_equal(error, 0);
}

/* C code on a thread that called Go before, or a signal handler on one that never did. */
static void no_goroutine_between_calls_from_c(void **state)
{
	static const __u64 used[] = { 24, 32, 40 };
	__u32 error = 7;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		words = 0;
		put_m(0xe000, 0xe000, 0xc000, used[i]);
		put(0xc000 + 152, 18);
		assert_int_equal(goid_of(&how, 0x1000, &error), used[i] == 32 ? 0 : 18);
		assert_int_equal(error, 0);
	}
}

/* g.sched may be of an earlier moment while a signal handler runs on its own stack. */
static void a_call_from_c_has_a_goroutine_before_it_was_saved(void **state)
{
	__u32 error = 7;

	(void)state;
	put_m(0xf000, 0xe000, 0xc000, 32);
	put(0xc000 + 152, 18);
	assert_int_equal(goid_of(&how, 0x1000, &error), 18);
	assert_int_equal(error, 0);
}

static void scheduler_without_goroutine(void **state)
{
	__u32 error = 7;

	(void)state;
	put_m(0xe000, 0xe000, 0, 0);
	assert_int_equal(goid_of(&how, 0x1000, &error), 0);
	assert_int_equal(error, 0);
}

static void thread_of_c_code(void **state)
{
	__u32 error = 7;

	(void)state;
	put(0x1000 - 8, 0);
	assert_int_equal(goid_of(&how, 0x1000, &error), 0);
	assert_int_equal(error, 0);
}

static void thread_without_local_storage(void **state)
{
	__u32 error = 7;

	(void)state;
	assert_int_equal(goid_of(&how, 0, &error), 0);
	assert_int_equal(error, 0);
}

static void dead_g_without_m(void **state)
{
	__u32 error = 7;

	(void)state;
	put(0x1000 - 8, 0xc000);
	put(0xc000 + 48, 0);
	assert_int_equal(goid_of(&how, 0x1000, &error), 0);
	assert_int_equal(error, 0);
}

static void each_unreadable_pointer_is_an_error(void **state)
{
	static const __u64 chain[][2] = {
		{ 0x1000 - 8, 0xe000 },
		{ 0xe000 + 48, 0xd000 },
		{ 0xd000 + 184, 0xc000 },
		{ 0xd000, 0xe000 },
	};

	(void)state;
	for (size_t known = 0; known <= 4; known++) {
		__u32 error = 0;

		words = 0;
		for (size_t i = 0; i < known; i++)
			put(chain[i][0], chain[i][1]);
		assert_int_equal(goid_of(&how, 0x1000, &error), 0);
		assert_int_equal(error, 1);
	}
}

static void offset_above_the_thread_pointer(void **state)
{
	struct abi_runtime_go positive = how; /* aarch64 */
	__u32 error = 7;

	(void)state;
	positive.g_tls_offset = 16;
	put(0x1010, 0xc000);
	put(0xc000 + 48, 0xd000);
	put(0xd000 + 184, 0xc000);
	put(0xc000 + 152, 19);
	assert_int_equal(goid_of(&positive, 0x1000, &error), 19);
	assert_int_equal(error, 0);
}

static void g_in_a_register(void **state)
{
	struct abi_runtime_go of = how; /* arm64 without cgo */
	struct runtime_place place = { .thread_pointer = 0x1000, .state_register = 0xe000 };
	struct runtime_thread thread;

	(void)state;
	of.g_tls_offset = ABI_GO_G_IN_REGISTER;
	put(0xe000 + 48, 0xd000);
	put(0xd000, 0xe000);
	put(0xd000 + 184, 0xc000);
	put_head(0xc000, 200);
	put(0xc000 + 152, 20);
	assert_true(go_read_thread(&of, place, &thread));
	assert_int_equal(thread.fiber_id, 20);
	place.state_register = 0; /* a thread that has not entered Go yet */
	assert_true(go_read_thread(&of, place, &thread));
	assert_int_equal(thread.fiber_id, 0);
	place.state_register = 0xf000;
	assert_false(go_read_thread(&of, place, &thread));
}

static void offset_in_a_word_of_the_process(void **state)
{
	struct abi_runtime_go of = how; /* a shared library */
	__u32 error = 7;

	(void)state;
	of.g_tls_offset = 0;
	of.g_tls_word = 0x2000;
	put(0x2000, (__u64)-80);
	put(0x1000 - 80, 0xc000);
	put(0xc000 + 48, 0xd000);
	put(0xd000 + 184, 0xc000);
	put(0xc000 + 152, 21);
	assert_int_equal(goid_of(&of, 0x1000, &error), 21);
	assert_int_equal(error, 0);
	assert_int_equal(goid_of(&of, 0, &error), 0);
	assert_int_equal(error, 0);
}

static void a_word_that_is_not_set_yet_gives_no_goroutine(void **state)
{
	struct abi_runtime_go of = how;
	__u32 error = 7;

	(void)state;
	of.g_tls_offset = 0;
	of.g_tls_word = 0x2000;
	put(0x2000, 0);
	put(0x1000, 0xc000);
	assert_int_equal(goid_of(&of, 0x1000, &error), 0);
	assert_int_equal(error, 0);
}

/* Nor is the register taken for g. Each of them would lead to a goroutine. */
static void a_word_without_an_offset_is_an_error(void **state)
{
	static const __u64 forged[] = { ABI_GO_G_IN_REGISTER, 4, (__u64)-4, 1 << 20,
		(__u64) - (1 << 20) - 8, 1ULL << 40, 0x7fffffffffffffff, 1ULL << 63 };
	struct abi_runtime_go of = how;

	(void)state;
	of.g_tls_offset = 0;
	of.g_tls_word = 0x2000;
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		__u32 error = 0;

		words = 0;
		put(0x2000, forged[i]);
		put(0x10000000 + forged[i], 0xc000);
		put(0xbad0 + 48, 0xd000);
		put(0xc000 + 48, 0xd000);
		put(0xd000 + 184, 0xc000);
		put(0xc000 + 152, 22);
		assert_int_equal(goid_of(&of, 0x10000000, &error), 0);
		assert_int_equal(error, 1);
	}
}

static void a_word_that_cannot_be_read_is_an_error(void **state)
{
	struct abi_runtime_go of = how;
	__u32 error = 0;

	(void)state;
	of.g_tls_word = 0x2000;
	put(0x1000 - 8, 0xc000);
	assert_int_equal(goid_of(&of, 0x1000, &error), 0);
	assert_int_equal(error, 1);
}

/* ---- what a goroutine is -------------------------------------------------------------------- */

static const struct abi_runtime_go births = {
	.g_tls_offset = (__u64)-8,
	.g_m = 48,
	.m_curg = 184,
	.g_goid = 152,
	.g_birth = 280,
	.labels_kind = ABI_GO_LABELS_SLICE,
	.has_parent = 1,
};

/* As put_m(), with what CURG is. */
static void put_thread(__u64 g, __u64 g0, __u64 curg)
{
	put_m(g, g0, curg, curg && g == g0 ? 200 : 0);
	if (!curg)
		return;
	put(curg + 152, 17);
	for (__u32 i = 0; i < ABI_GO_BIRTH_WORDS; i++)
		put(curg + 280 + 8 * (__u64)i, 0x100 + i);
}

static struct runtime_thread read_births(const struct abi_runtime_go *of, bool ok)
{
	const struct runtime_place place = { .thread_pointer = 0x1000 };
	struct runtime_thread thread;

	assert_int_equal(go_read_thread(of, place, &thread), ok);
	return thread;
}

static void a_goroutine_says_where_it_comes_from(void **state)
{
	struct runtime_thread thread;

	(void)state;
	put_thread(0xc000, 0xe000, 0xc000);
	thread = read_births(&births, true);
	assert_int_equal(thread.state, ABI_FIBER_RUNS);
	assert_int_equal(thread.parent_id, 0x100);
	assert_int_equal(thread.created_at, 0x101);
	assert_int_equal(thread.start, 0x103);
	assert_int_equal(thread.labels, 0x109);
	assert_int_equal(thread.labels_kind, ABI_GO_LABELS_SLICE);
	assert_int_equal(reads, 5); /* one more than for its id */
}

static void before_1_21_there_is_no_parent(void **state)
{
	struct abi_runtime_go old = births;
	struct runtime_thread thread;

	(void)state;
	old.has_parent = 0;
	old.labels_kind = ABI_GO_LABELS_NONE;
	put_thread(0xc000, 0xe000, 0xc000);
	thread = read_births(&old, true);
	assert_int_equal(thread.parent_id, 0);
	assert_int_equal(thread.created_at, 0x101);
	assert_int_equal(thread.labels, 0);
	assert_int_equal(thread.labels_kind, ABI_GO_LABELS_NONE);
}

static void the_stack_is_the_threads_or_the_signals(void **state)
{
	static const struct {
		__u64 g, curg;
		__u32 state;
	} cases[] = {
		{ 0xe000, 0xc000, ABI_FIBER_ON_THREAD_STACK },
		{ 0xe000, 0, ABI_FIBER_NONE },
		{ 0xf000, 0xc000, ABI_FIBER_ON_SIGNAL_STACK },
		{ 0xf000, 0, ABI_FIBER_ON_SIGNAL_STACK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		words = 0;
		put_thread(cases[i].g, 0xe000, cases[i].curg);
		assert_int_equal(read_births(&births, true).state, cases[i].state);
	}
}

static void nothing_is_said_without_an_m_or_the_offsets(void **state)
{
	(void)state;
	put_thread(0xc000, 0xe000, 0xc000);
	assert_int_equal(read_births(&how, true).state, 0);
	words = 0;
	put(0x1000 - 8, 0xc000);
	put(0xc000 + 48, 0);
	assert_int_equal(read_births(&births, true).state, 0);
}

static void words_that_cannot_be_read_are_an_error(void **state)
{
	struct runtime_thread thread;

	(void)state;
	put_thread(0xc000, 0xe000, 0xc000);
	words--;
	thread = read_births(&births, false);
	assert_int_equal(thread.fiber_id, 17);
	assert_int_equal(thread.parent_id | thread.created_at | thread.labels, 0);
}

/* ---- why a goroutine waits ------------------------------------------------------------------ */

enum { RUNNING = 2, WAITING = 4, SCANNED = 0x1000, CHAN_RECEIVE = 14 };

static const struct abi_runtime_go waits = {
	.g_tls_offset = (__u64)-8,
	.g_m = 48,
	.m_curg = 184,
	.g_goid = 152,
	.g_birth = 280,
	.has_parent = 1,
	.m_lockedg = 384,
	.minor = 26,
};

/* A goroutine with these words, next to others. */
static void put_goroutine(__u64 g, __u64 goid, __u32 status, __u8 reason)
{
	put(g + 144, status | 0x7700000000);
	put(g + 152, goid);
	put(g + 160, 0x1111);
	put(g + 168, 0x2222);
	put(g + 176, reason | 0xaa00);
	for (__u32 i = 0; i < ABI_GO_BIRTH_WORDS; i++)
		put(g + 280 + 8 * (__u64)i, 0x100 + i);
}

/* A thread on its own stack, for CURG; LOCKED is locked to it. */
static void put_waiting_thread(__u64 curg, __u64 locked)
{
	words = 0;
	put_m(0xe000, 0xe000, curg, curg ? 200 : 0);
	put(0xd000 + 384, locked);
}

static void a_locked_goroutine_waits_with_its_thread(void **state)
{
	struct runtime_thread thread;

	(void)state;
	for (int scanned = 0; scanned < 2; scanned++) {
		put_waiting_thread(0, 0xc000);
		put_goroutine(0xc000, 17, WAITING | (scanned ? SCANNED : 0), CHAN_RECEIVE);
		thread = read_births(&waits, true);
		assert_int_equal(thread.fiber_id, 17);
		assert_int_equal(thread.wait, 26 << 8 | CHAN_RECEIVE);
		assert_int_equal(thread.state, ABI_FIBER_NONE);
		assert_int_equal(thread.fiber.address, 0); /* it does not run */
		assert_int_equal(thread.parent_id, 0x100);
	}
}

static void a_locked_goroutine_that_does_not_wait_is_none(void **state)
{
	struct runtime_thread thread;

	(void)state;
	put_waiting_thread(0, 0xc000);
	put_goroutine(0xc000, 17, RUNNING, CHAN_RECEIVE);
	thread = read_births(&waits, true);
	assert_int_equal(thread.fiber_id | thread.wait | thread.parent_id, 0);
	put_waiting_thread(0, 0);
	thread = read_births(&waits, true);
	assert_int_equal(thread.fiber_id | thread.wait | thread.parent_id, 0);
}

static void a_running_goroutines_reason_is_an_earlier_one(void **state)
{
	struct runtime_thread thread;

	(void)state;
	put_waiting_thread(0xc000, 0);
	put_goroutine(0xc000, 17, RUNNING, CHAN_RECEIVE);
	thread = read_births(&waits, true);
	assert_int_equal(thread.fiber_id, 17);
	assert_int_equal(thread.wait, 0);
}

static void a_goroutine_may_wait_while_its_thread_works(void **state)
{
	struct abi_runtime_go of = waits;
	struct runtime_thread thread;

	(void)state;
	put_waiting_thread(0xc000, 0);
	put_goroutine(0xc000, 17, WAITING, 1);
	thread = read_births(&of, true);
	assert_int_equal(thread.fiber_id, 17);
	assert_int_equal(thread.wait, 26 << 8 | 1);
	assert_int_equal(thread.state, ABI_FIBER_ON_THREAD_STACK);
	of.minor = 19; /* the reason was not set */
	thread = read_births(&of, true);
	assert_int_equal(thread.fiber_id, 17);
	assert_int_equal(thread.wait, 0);
}

static void a_reason_that_cannot_be_read_is_an_error(void **state)
{
	struct runtime_thread thread;

	(void)state;
	put_waiting_thread(0, 0xc000); /* which is not mapped */
	thread = read_births(&waits, false);
	assert_int_equal(thread.fiber_id | thread.wait, 0);
	put_waiting_thread(0xc000, 0);
	thread = read_births(&waits, false);
	assert_int_equal(thread.fiber_id | thread.wait, 0);
	put_waiting_thread(0, 0);
	words--;
	thread = read_births(&waits, false);
	assert_int_equal(thread.fiber_id | thread.wait, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(goroutine_on_its_own_stack, empty_memory),
		cmocka_unit_test_setup(goroutine_and_its_m_come_with_the_id, empty_memory),
		cmocka_unit_test_setup(system_stack_has_the_id_of_its_goroutine, empty_memory),
		cmocka_unit_test_setup(no_goroutine_between_calls_from_c, empty_memory),
		cmocka_unit_test_setup(
			a_call_from_c_has_a_goroutine_before_it_was_saved, empty_memory),
		cmocka_unit_test_setup(scheduler_without_goroutine, empty_memory),
		cmocka_unit_test_setup(thread_of_c_code, empty_memory),
		cmocka_unit_test_setup(thread_without_local_storage, empty_memory),
		cmocka_unit_test_setup(dead_g_without_m, empty_memory),
		cmocka_unit_test_setup(each_unreadable_pointer_is_an_error, empty_memory),
		cmocka_unit_test_setup(offset_above_the_thread_pointer, empty_memory),
		cmocka_unit_test_setup(g_in_a_register, empty_memory),
		cmocka_unit_test_setup(offset_in_a_word_of_the_process, empty_memory),
		cmocka_unit_test_setup(a_word_that_is_not_set_yet_gives_no_goroutine, empty_memory),
		cmocka_unit_test_setup(a_word_without_an_offset_is_an_error, empty_memory),
		cmocka_unit_test_setup(a_word_that_cannot_be_read_is_an_error, empty_memory),
		cmocka_unit_test_setup(a_goroutine_says_where_it_comes_from, empty_memory),
		cmocka_unit_test_setup(before_1_21_there_is_no_parent, empty_memory),
		cmocka_unit_test_setup(the_stack_is_the_threads_or_the_signals, empty_memory),
		cmocka_unit_test_setup(nothing_is_said_without_an_m_or_the_offsets, empty_memory),
		cmocka_unit_test_setup(words_that_cannot_be_read_are_an_error, empty_memory),
		cmocka_unit_test_setup(a_locked_goroutine_waits_with_its_thread, empty_memory),
		cmocka_unit_test_setup(a_locked_goroutine_that_does_not_wait_is_none, empty_memory),
		cmocka_unit_test_setup(a_running_goroutines_reason_is_an_earlier_one, empty_memory),
		cmocka_unit_test_setup(a_goroutine_may_wait_while_its_thread_works, empty_memory),
		cmocka_unit_test_setup(a_reason_that_cannot_be_read_is_an_error, empty_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
