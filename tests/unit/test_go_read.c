/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/runtimes/go.bpf.h"

/* The process's memory: words at addresses; everything else is not mapped. */
static struct {
	__u64 address, value;
} memory[8];
static size_t words;

static void put(__u64 address, __u64 value)
{
	assert_true(words < sizeof(memory) / sizeof(memory[0]));
	memory[words].address = address;
	memory[words++].value = value;
}

long read_user(void *to, __u32 size, __u64 address)
{
	for (size_t i = 0; i < words; i++) {
		if (memory[i].address != address || size != sizeof(__u64))
			continue;
		memcpy(to, &memory[i].value, size);
		return 0;
	}
	return -EFAULT;
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
	words = 0;
	return 0;
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
	put(0x1000 - 8, 0xe000);
	put(0xe000 + 48, 0xd000);
	put(0xd000 + 184, 0xc000);
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
	put(0x1000 - 8, 0xe000); /* g0, whose own goid is 0 */
	put(0xe000 + 48, 0xd000);
	put(0xe000 + 152, 0);
	put(0xd000 + 184, 0xc000);
	put(0xc000 + 152, 18);
	assert_int_equal(goid_of(&how, 0x1000, &error), 18);
	assert_int_equal(error, 0);
}

static void scheduler_without_goroutine(void **state)
{
	__u32 error = 7;

	(void)state;
	put(0x1000 - 8, 0xe000);
	put(0xe000 + 48, 0xd000);
	put(0xd000 + 184, 0);
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
	};

	(void)state;
	for (size_t known = 0; known <= 3; known++) {
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
	put(0xd000 + 184, 0xc000);
	put(0xc000 + 152, 20);
	assert_true(go_read_thread(&of, place, &thread));
	assert_int_equal(thread.fiber_id, 20);
	place.state_register = 0; /* a thread that has not entered Go yet */
	assert_true(go_read_thread(&of, place, &thread));
	assert_int_equal(thread.fiber_id, 0);
	place.state_register = 0xf000;
	assert_false(go_read_thread(&of, place, &thread));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(goroutine_on_its_own_stack, empty_memory),
		cmocka_unit_test_setup(goroutine_and_its_m_come_with_the_id, empty_memory),
		cmocka_unit_test_setup(system_stack_has_the_id_of_its_goroutine, empty_memory),
		cmocka_unit_test_setup(scheduler_without_goroutine, empty_memory),
		cmocka_unit_test_setup(thread_of_c_code, empty_memory),
		cmocka_unit_test_setup(thread_without_local_storage, empty_memory),
		cmocka_unit_test_setup(dead_g_without_m, empty_memory),
		cmocka_unit_test_setup(each_unreadable_pointer_is_an_error, empty_memory),
		cmocka_unit_test_setup(offset_above_the_thread_pointer, empty_memory),
		cmocka_unit_test_setup(g_in_a_register, empty_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
