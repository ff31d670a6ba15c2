/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's copy of the unwind tables, with files in place of BPF's maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/sampler/collect/tables.h"

enum {
	POOL_BYTES = ABI_UNWIND_REGIONS * ABI_UNWIND_REGION_BYTES,
	SLOTS_BYTES = ABI_UNWIND_SLOTS * sizeof(struct abi_unwind_slot),
	RANGE_BYTES = sizeof(struct abi_unwind_range),
};

struct world {
	struct tables_maps maps;
	struct tables *tables;
	uint32_t epoch, full, files_epoch, rules_epoch;
	uint32_t left_out[ABI_LEFT_OUT];
};

static int map_of(size_t bytes)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	return fd;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->maps = (struct tables_maps){
		.processes = -1,
		.ranges = map_of((ABI_UNWIND_RANGES + 64) * (size_t)RANGE_BYTES),
		.slots = map_of(SLOTS_BYTES),
		.pool = map_of(POOL_BYTES),
		.files = -1,
		.epoch = &w->epoch,
		.full = &w->full,
		.files_epoch = &w->files_epoch,
		.rules_epoch = &w->rules_epoch,
		.left_out = w->left_out,
	};
	assert_int_equal(tables_create(&w->maps, &w->tables), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	tables_destroy(w->tables);
	close(w->maps.ranges);
	close(w->maps.slots);
	close(w->maps.pool);
	free(w);
	return 0;
}

static void slots_are_the_maps(void **state)
{
	struct world *w = *state;
	struct abi_unwind_slot *slots = tables_slots(w->tables), slot;

	memset(&slots[ABI_UNWIND_SLOTS - 1], 0xab, sizeof(slot));
	assert_int_equal(pread(w->maps.slots, &slot, sizeof(slot), SLOTS_BYTES - sizeof(slot)),
		sizeof(slot));
	assert_memory_equal(&slot, &slots[ABI_UNWIND_SLOTS - 1], sizeof(slot));
}

static void without_slots_there_are_no_tables(void **state)
{
	struct tables_maps maps = ((struct world *)*state)->maps;
	struct tables *none = NULL;

	maps.slots = -1;
	assert_int_equal(tables_create(&maps, &none), -EBADF);
	assert_null(none);
	tables_destroy(NULL);
}

/* Writes COUNT distinct ranges from FIRST on and checks that nothing around them changes. */
static void write_and_read_ranges(struct world *w, uint32_t first, uint32_t count)
{
	struct abi_unwind_range ranges[300], read[302] = { 0 }, zero = { 0 };

	assert_true(count <= 300 && first > 0);
	for (uint32_t i = 0; i < count; i++)
		memset(&ranges[i], (int)(i % 255 + 1), sizeof(ranges[i]));
	assert_int_equal(tables_write_ranges(w->tables, first, ranges, count), 0);
	assert_int_equal(pread(w->maps.ranges, read, (count + 2) * (size_t)RANGE_BYTES,
				 (first - 1) * (off_t)RANGE_BYTES),
		(count + 2) * (size_t)RANGE_BYTES);
	assert_memory_equal(&read[0], &zero, sizeof(zero));
	assert_memory_equal(&read[1], ranges, count * sizeof(*ranges));
	assert_memory_equal(&read[count + 1], &zero, sizeof(zero));
}

static void ranges_go_where_they_should(void **state)
{
	struct world *w = *state;

	write_and_read_ranges(w, 1, 1);
	/* Across the end of a page of memory. */
	write_and_read_ranges(w, 100, 300);
	write_and_read_ranges(w, ABI_UNWIND_RANGES - 3, 3);
}

static void ranges_beyond_the_map_are_refused(void **state)
{
	static const struct abi_unwind_range ranges[4];
	struct world *w = *state;

	assert_int_equal(tables_write_ranges(w->tables, ABI_UNWIND_RANGES - 3, ranges, 3), 0);
	assert_int_equal(tables_write_ranges(w->tables, ABI_UNWIND_RANGES - 3, ranges, 4), -E2BIG);
	assert_int_equal(tables_write_ranges(w->tables, UINT32_MAX, ranges, 4), -E2BIG);
	/* By-file mode has less room. */
	assert_false(tables_by_file(w->tables));
	tables_destroy(w->tables);
	w->maps.files = 0;
	assert_int_equal(tables_create(&w->maps, &w->tables), 0);
	assert_true(tables_by_file(w->tables));
	assert_int_equal(tables_write_ranges(w->tables, ABI_UNWIND_FILE_RANGES - 3, ranges, 3), 0);
	assert_int_equal(
		tables_write_ranges(w->tables, ABI_UNWIND_FILE_RANGES - 3, ranges, 4), -E2BIG);
}

static void pages_go_where_they_should(void **state)
{
	struct world *w = *state;
	uint8_t bytes[5000], read[5002];

	memset(bytes, 0x5a, sizeof(bytes));
	assert_int_equal(tables_write_pool(w->tables, 4000, bytes, sizeof(bytes)), 0);
	assert_int_equal(pread(w->maps.pool, read, sizeof(read), 3999), sizeof(read));
	assert_int_equal(read[0], 0);
	assert_memory_equal(read + 1, bytes, sizeof(bytes));
	assert_int_equal(read[5001], 0);
	assert_int_equal(tables_write_pool(w->tables, POOL_BYTES - 5000, bytes, 5000), 0);
	assert_int_equal(tables_write_pool(w->tables, POOL_BYTES - 4999, bytes, 5000), -E2BIG);
}

static void missing_maps_are_errors(void **state)
{
	static const struct abi_unwind_range range;
	static const struct abi_unwind_process process;
	static const struct abi_file file;
	struct world *w = *state;

	tables_destroy(w->tables);
	close(w->maps.ranges);
	close(w->maps.pool);
	w->maps.ranges = w->maps.pool = -1;
	assert_int_equal(tables_create(&w->maps, &w->tables), 0);
	assert_int_equal(tables_write_ranges(w->tables, 0, &range, 1), -EBADF);
	assert_int_equal(tables_write_pool(w->tables, 0, "x", 1), -EBADF);
	assert_true(tables_set_process(w->tables, 1, &process) < 0);
	assert_true(tables_set_file(w->tables, &file, &process) < 0);
	tables_remove_process(w->tables, 1);
	tables_remove_file(w->tables, &file);
}

static void variables_are_set(void **state)
{
	struct world *w = *state;

	tables_set_epoch(w->tables, 1);
	tables_set_files_epoch(w->tables, 2);
	tables_set_rules_epoch(w->tables, 3);
	tables_set_full(w->tables, true);
	assert_int_equal(w->epoch, 1);
	assert_int_equal(w->files_epoch, 2);
	assert_int_equal(w->rules_epoch, 3);
	assert_int_equal(w->full, 1);
	tables_set_full(w->tables, false);
	assert_int_equal(w->full, 0);
}

static void processes_are_left_out(void **state)
{
	struct world *w = *state;
	const uint32_t one = 7, same = 7 + ABI_LEFT_OUT;

	tables_leave_out(w->tables, one, true);
	assert_int_equal(w->left_out[7], one);
	tables_leave_out(w->tables, one, true);
	assert_int_equal(w->left_out[7], one);
	/* Another process in the same slot does not clear it, but may take it over. */
	tables_leave_out(w->tables, same, false);
	assert_int_equal(w->left_out[7], one);
	tables_leave_out(w->tables, same, true);
	assert_int_equal(w->left_out[7], same);
	tables_leave_out(w->tables, same, false);
	assert_int_equal(w->left_out[7], 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(slots_are_the_maps),
		CASE(without_slots_there_are_no_tables),
		CASE(ranges_go_where_they_should),
		CASE(ranges_beyond_the_map_are_refused),
		CASE(pages_go_where_they_should),
		CASE(missing_maps_are_errors),
		CASE(variables_are_set),
		CASE(processes_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
