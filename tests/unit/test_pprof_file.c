/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile with everything that a node's profile can have. If PPROF_FIXTURE is set, its bytes are
 * also written to that file, for tests/accuracy/pprof.sh to check with other readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "pprof/pprof.h"

DEFINE_AUTO(pprof);

enum { PERIOD_NS = 10000000, FRAMES = 4 };

static uint64_t mapping(struct pprof *p, struct pprof_mapping m)
{
	uint64_t id;

	assert_int_equal(pprof_mapping(p, &m, &id), 0);
	return id;
}

static uint64_t location(struct pprof *p, uint64_t in, uint64_t address,
	const struct pprof_line *lines, size_t count)
{
	uint64_t id;

	assert_int_equal(pprof_location(p, in, address, lines, count, &id), 0);
	return id;
}

/* Kernel, inlined C++, an address without a name, JIT code, an unmapped address. */
static void add_locations(struct pprof *p, uint64_t *ret_locations)
{
	static const struct pprof_line inlined[] = {
		{ "ns::inner(int)", "_ZN2ns5innerEi", "/src/inner.h", 7, 3, 5 },
		{ "ns::outer(int)", "_ZN2ns5outerEi", "/src/outer.cc", 42, 9, 30 },
	};
	static const struct pprof_line symbol = { "vfs_read", "vfs_read", "", 0, 0, 0 };
	static const struct pprof_line jit = { "LazyCompile:*foo /a.js:1",
		"LazyCompile:*foo /a.js:1", "", 0, 0, 0 };
	uint64_t program, library, kernel, jitted;

	program = mapping(p, (struct pprof_mapping){ 0x401000, 0x402000, 0x1000,
				     "/opt/fathom-test/program", "deadbeef" });
	library = mapping(p, (struct pprof_mapping){ 0x2000, 0x9000, 0x1000,
				     "/opt/fathom-test/libsecret.so.1", "0badcafe" });
	kernel = mapping(p, (struct pprof_mapping){ UINT64_C(0xffffffff81000000),
				    UINT64_C(0xffffffff82000000), 0, "[kernel.kallsyms]", "" });
	jitted = mapping(p, (struct pprof_mapping){ 0, UINT64_MAX, 0, "[jit]", "" });
	ret_locations[0] = location(p, kernel, UINT64_C(0xffffffff81002010), &symbol, 1);
	ret_locations[1] = location(p, library, 0x2f37, NULL, 0);
	ret_locations[2] = location(p, jitted, 0x7f0000001234, &jit, 1);
	ret_locations[3] = location(p, program, 0x401234, inlined, 2);
	location(p, 0, 0x666, NULL, 0);
}

static void add_samples(struct pprof *p, const uint64_t *locations)
{
	int64_t values[] = { 1, PERIOD_NS };

	for (int i = 0; i < 100; i++) {
		struct pprof_label labels[] = { { "pid", NULL, 4242, "id" },
			{ "tid", NULL, 4242 + i % 2, "id" }, { "goid", NULL, 17 + i % 3, "id" },
			{ "cpu", NULL, i % 2, "id" }, { "comm", "caf\xc3\xa9\xff", 0, NULL },
			{ "thread_comm", "worker", 0, NULL }, { "container_id", "", 0, NULL } };

		/* A quarter of the samples has each number of frames; all end in the program. */
		assert_int_equal(
			pprof_sample(p, locations + i % FRAMES, (size_t)(FRAMES - i % FRAMES),
				values, labels, ARRAY_SIZE(labels)),
			0);
	}
}

static void encode_fixture(struct buffer *out)
{
	struct pprof_options options = {
		.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.type_count = 2,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = PERIOD_NS,
		.time_ns = INT64_C(1700000000000000000),
		.duration_ns = INT64_C(1000000000),
	};
	autocall(auto_pprof_destroy) struct pprof *p = NULL;
	uint64_t locations[FRAMES];

	assert_int_equal(pprof_create(&options, &p), 0);
	add_locations(p, locations);
	add_samples(p, locations);
	assert_int_equal(pprof_comment(p, "made by hand"), 0);
	assert_int_equal(pprof_encode(p, true, out), 0);
}

static void test_one_of_everything_encodes_to_the_same_bytes(void **state)
{
	autocall(buffer_deinit) struct buffer first, second;
	const char *path = getenv("PPROF_FIXTURE");
	autofclose FILE *file = NULL;

	(void)state;
	buffer_init(&first, SIZE_MAX);
	buffer_init(&second, SIZE_MAX);
	encode_fixture(&first);
	encode_fixture(&second);
	assert_int_equal(first.size, second.size);
	assert_memory_equal(first.bytes, second.bytes, first.size);
	if (!path)
		return;
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(first.bytes, 1, first.size, file), first.size);
	assert_int_equal(fflush(file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_of_everything_encodes_to_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
