/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What agent/sampler/unwind gives to a kernel that finds mappings itself: files, each with the
 * module of its samples. Memory replaces the kernel's maps.
 */
#include "agent/sampler/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "symbolizer/index/unwind.h"
#include "tests/unit/small_index.h"
#include "tests/unit/unwind_page_writer.h"

enum {
	BASE = 0x400000, /* of small_index.h's segment: two pages of code, file offset 0 */
	LOADED = 0x7f0000000000,
	BYTES = 0x20000,
	FILES = 8, /* the kernel's capacity in most cases */
	KERNEL_DEVICE = 259 << 20 | 300, /* the kernel's encoding of 259:300 */
};

struct kernel_file {
	struct abi_file file;
	struct abi_unwind_process ranges;
};

struct fixture {
	struct unwind *unwind;
	struct metrics metrics;
	/* The kernel's side. */
	struct abi_unwind_slot slots[ABI_UNWIND_SLOTS];
	struct abi_unwind_range ranges[ABI_UNWIND_FILE_RANGES];
	struct kernel_file files[ABI_UNWIND_FILES];
	size_t file_count, file_limit;
	uint32_t epoch;
	bool process_set;
	/* User space's side. */
	struct index *index;
	enum unwind_module module_state;
	struct module module;
	struct mappings *mappings;
};

static int write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count)
{
	struct fixture *f = context;

	assert_true(first + count <= ABI_UNWIND_FILE_RANGES);
	memcpy(f->ranges + first, ranges, count * sizeof(*ranges));
	return 0;
}

static int write_pool(void *context, uint32_t offset, const void *bytes, size_t size)
{
	(void)context;
	(void)offset;
	(void)bytes;
	(void)size;
	return 0;
}

static int set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process)
{
	struct fixture *f = context;

	(void)tgid;
	(void)process;
	f->process_set = true;
	return 0;
}

static void remove_process(void *context, uint32_t tgid)
{
	(void)context;
	(void)tgid;
}

static struct kernel_file *find(struct fixture *f, const struct abi_file *file)
{
	for (size_t i = 0; i < f->file_count; i++)
		if (!memcmp(&f->files[i].file, file, sizeof(*file)))
			return &f->files[i];
	return NULL;
}

static int set_file(
	void *context, const struct abi_file *file, const struct abi_unwind_process *ranges)
{
	struct fixture *f = context;
	struct kernel_file *known = find(f, file);

	if (!known && f->file_count == f->file_limit)
		return -E2BIG;
	if (!known)
		known = &f->files[f->file_count++];
	*known = (struct kernel_file){ *file, *ranges };
	return 0;
}

static void remove_file(void *context, const struct abi_file *file)
{
	struct fixture *f = context;
	struct kernel_file *known = find(f, file);

	if (known)
		*known = f->files[--f->file_count];
}

static void set_files_epoch(void *context, uint32_t epoch)
{
	((struct fixture *)context)->epoch = epoch;
}

static void set_epoch(void *context, uint32_t epoch)
{
	(void)context;
	(void)epoch;
}

static void set_rules_epoch(void *context, uint32_t epoch)
{
	(void)context;
	(void)epoch;
}

static void set_full(void *context, bool full)
{
	(void)context;
	(void)full;
}

static enum unwind_module module_state(
	void *context, const struct module *module, const struct index **ret_index)
{
	struct fixture *f = context;

	assert_ptr_equal(module, &f->module);
	if (f->module_state == UNWIND_MODULE_READY)
		*ret_index = f->index;
	return f->module_state;
}

static struct index *make_index(void)
{
	struct index_writer *w = create();
	const struct abi_unwind_page *page;
	struct page_writer writer;

	page_begin(&writer, rule_none());
	page_row(&writer, 0x1000, rule_sp(16));
	page = page_finish(&writer);
	assert_int_equal(writer_unwind_page(w, BASE, page, page->size), 0);
	return finish(w);
}

/* From now on the process maps file NUMBER, with the same module. */
static void map_file(struct fixture *f, uint64_t number)
{
	const struct mapping mapping = { .start = LOADED,
		.end = LOADED + BYTES,
		.module = &f->module,
		.file = { .device = makedev(259, 300),
			.inode = number,
			.mtime_ns = 5000000001,
			.size_bytes = BYTES } };

	assert_int_equal(mappings_add(&f->mappings, &mapping), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->module = (struct module){ .number = 1, .kind = MODULE_FILE };
	f->module_state = UNWIND_MODULE_READY;
	f->index = make_index();
	f->file_limit = FILES;
	f->mappings = mappings_create();
	map_file(f, 7);
	*state = f;
	return unwind_create(
		&(struct unwind_options){
			.target = { f->slots, write_ranges, write_pool, set_process, remove_process,
				set_file, remove_file, set_files_epoch, set_epoch, set_rules_epoch,
				set_full, f },
			.metrics = &f->metrics,
			.module = module_state,
			.context = f,
		},
		&f->unwind);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unwind_destroy(f->unwind);
	mappings_unref(f->mappings);
	index_destroy(f->index);
	free(f);
	return 0;
}

/* A sample that found file NUMBER, which is mapped like the fixture's module. */
static struct abi_unwind_rest rest_of(uint64_t number)
{
	return (struct abi_unwind_rest){
		.pc = LOADED + 0x1004,
		.mapping = { .start = LOADED,
			.end = LOADED + BYTES,
			.executable = 1,
			.file = { .inode = number,
				.device = KERNEL_DEVICE,
				.mtime_s = 5,
				.mtime_ns = 1,
				.size = BYTES,
				.generation = 3 } },
	};
}

static void learn(struct fixture *f, uint64_t number)
{
	const struct abi_unwind_rest rest = rest_of(number);

	map_file(f, number);
	unwind_learn(f->unwind, f->mappings, &rest);
}

static const struct abi_unwind_range *only_range(struct fixture *f, uint64_t number)
{
	const struct abi_unwind_rest rest = rest_of(number);
	const struct kernel_file *known = find(f, &rest.mapping.file);

	if (!known)
		return NULL;
	assert_int_equal(known->ranges.range_count, 1);
	return &f->ranges[known->ranges.first_range];
}

static void file_has_ranges_by_its_offsets(void **state)
{
	struct fixture *f = *state;
	const struct abi_unwind_range *range;

	learn(f, 7);
	range = only_range(f, 7);
	assert_non_null(range);
	assert_int_equal(range->start, 0);
	assert_int_equal(range->end, BYTES);
	assert_int_equal(range->address, 0);
	assert_int_equal(range->slot_count, 1); /* only the first page has a table */
	assert_int_equal(range->kind, ABI_UNWIND_TABLES);
	/* Nothing has cached the file yet. */
	assert_int_equal(f->epoch, 0);
}

static void what_is_known_is_not_written_again(void **state)
{
	struct fixture *f = *state;
	const struct abi_unwind_range *range;

	learn(f, 7);
	range = only_range(f, 7);
	learn(f, 7);
	unwind_modules_changed(f->unwind);
	assert_ptr_equal(only_range(f, 7), range);
	assert_int_equal(f->file_count, 1);
}

static void copies_of_a_module_share_its_slots(void **state)
{
	struct fixture *f = *state;

	learn(f, 7);
	learn(f, 8);
	assert_int_equal(f->file_count, 2);
	assert_int_equal(only_range(f, 7)->first_slot, only_range(f, 8)->first_slot);
}

static void file_without_its_index_waits(void **state)
{
	struct fixture *f = *state;
	const struct abi_unwind_range *range;

	f->module_state = UNWIND_MODULE_WAITING;
	learn(f, 7);
	range = only_range(f, 7);
	assert_int_equal(range->kind, ABI_UNWIND_WAITING);
	assert_true(range->end > BYTES);
	unwind_modules_changed(f->unwind);
	assert_ptr_equal(only_range(f, 7), range);
	f->module_state = UNWIND_MODULE_READY;
	unwind_modules_changed(f->unwind);
	assert_int_equal(only_range(f, 7)->kind, ABI_UNWIND_TABLES);
	assert_int_equal(f->epoch, 0);
}

/* The file was unwound without tables, and the kernel has that cached. */
static void file_whose_index_comes_late_is_told_of(void **state)
{
	struct fixture *f = *state;

	f->module_state = UNWIND_MODULE_NONE;
	learn(f, 7);
	assert_int_equal(f->epoch, 0);
	f->module_state = UNWIND_MODULE_READY;
	unwind_modules_changed(f->unwind);
	assert_int_not_equal(only_range(f, 7)->slot_count, 0);
	assert_int_not_equal(f->epoch, 0);
}

static void file_without_tables_has_no_slots(void **state)
{
	struct fixture *f = *state;

	f->module_state = UNWIND_MODULE_NONE;
	learn(f, 7);
	assert_int_equal(only_range(f, 7)->kind, ABI_UNWIND_TABLES);
	assert_int_equal(only_range(f, 7)->slot_count, 0);
}

static void forgotten_module_takes_its_files_along(void **state)
{
	struct fixture *f = *state;
	uint32_t epoch;

	learn(f, 7);
	learn(f, 8);
	epoch = f->epoch;
	unwind_forget_module(f->unwind, &f->module);
	assert_int_equal(f->file_count, 0);
	assert_int_not_equal(f->epoch, epoch);
	learn(f, 7);
	assert_int_equal(f->file_count, 1);
}

static void files_that_do_not_match_the_process_are_not_learned(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rest rest = rest_of(7);

	rest.mapping.start += 0x1000;
	unwind_learn(f->unwind, f->mappings, &rest);
	rest = rest_of(7);
	rest.mapping.file_off = 0x1000;
	unwind_learn(f->unwind, f->mappings, &rest);
	rest = rest_of(7);
	rest.pc = LOADED + BYTES;
	unwind_learn(f->unwind, f->mappings, &rest);
	rest = rest_of(ABI_FILE_VDSO); /* but the module is a file */
	unwind_learn(f->unwind, f->mappings, &rest);
	rest = rest_of(7);
	rest.mapping.end = 0; /* no mapping reported */
	unwind_learn(f->unwind, f->mappings, &rest);
	assert_int_equal(f->file_count, 0);
	rest = rest_of(7);
	rest.pc = LOADED + BYTES;
	rest.is_return = 1; /* of a call at the very end */
	unwind_learn(f->unwind, f->mappings, &rest);
	assert_int_equal(f->file_count, 1);
}

/* mremap() leaves no record; learning the file would give all processes the wrong tables. */
static void file_moved_over_another_is_not_learned_as_that(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rest rest = rest_of(8);

	unwind_learn(f->unwind, f->mappings, &rest);
	rest = rest_of(7);
	rest.mapping.file.device++;
	unwind_learn(f->unwind, f->mappings, &rest);
	assert_int_equal(f->file_count, 0);
	learn(f, 8);
	assert_int_equal(f->file_count, 1);
}

static void file_written_to_since_it_was_looked_at_is_not_learned(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rest rest = rest_of(7);

	rest.mapping.file.mtime_ns++;
	unwind_learn(f->unwind, f->mappings, &rest);
	rest = rest_of(7);
	rest.mapping.file.size += 1;
	unwind_learn(f->unwind, f->mappings, &rest);
	assert_int_equal(f->file_count, 0);
}

static void file_of_an_overlay_is_known_by_what_is_shown(void **state)
{
	struct fixture *f = *state;
	struct abi_unwind_rest rest = rest_of(4711);

	rest.mapping.shown = (struct abi_shown_file){ .inode = 7, .device = KERNEL_DEVICE + 1 };
	unwind_learn(f->unwind, f->mappings, &rest);
	assert_int_equal(f->file_count, 0);
	rest.mapping.shown.device = KERNEL_DEVICE;
	unwind_learn(f->unwind, f->mappings, &rest);
	assert_int_equal(f->file_count, 1);
	assert_memory_equal(&f->files[0].file, &rest.mapping.file, sizeof(struct abi_file));
}

static void full_table_starts_over(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 1; i <= FILES + 1; i++)
		learn(f, i);
	assert_int_equal(f->file_count, 1);
	assert_non_null(only_range(f, FILES + 1));
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_FILES_REFUSED), 0);
}

static void own_table_is_bounded(void **state)
{
	struct fixture *f = *state;

	f->file_limit = ABI_UNWIND_FILES;
	for (uint64_t i = 1; i <= ABI_UNWIND_FILES + 1; i++)
		learn(f, i);
	assert_int_equal(f->file_count, 1);
}

static void other_processes_are_not_reported(void **state)
{
	struct fixture *f = *state;
	const struct process p = { .pid = 42, .number = 7, .mappings = f->mappings };

	assert_int_equal(unwind_sync(f->unwind, &p, 0), 0);
	unwind_settle(f->unwind, &p);
	unwind_forget(f->unwind, &p);
	assert_false(f->process_set);
}

#define FILES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FILES_TEST(file_has_ranges_by_its_offsets),
		FILES_TEST(what_is_known_is_not_written_again),
		FILES_TEST(copies_of_a_module_share_its_slots),
		FILES_TEST(file_without_its_index_waits),
		FILES_TEST(file_whose_index_comes_late_is_told_of),
		FILES_TEST(file_without_tables_has_no_slots),
		FILES_TEST(forgotten_module_takes_its_files_along),
		FILES_TEST(files_that_do_not_match_the_process_are_not_learned),
		FILES_TEST(file_moved_over_another_is_not_learned_as_that),
		FILES_TEST(file_written_to_since_it_was_looked_at_is_not_learned),
		FILES_TEST(file_of_an_overlay_is_known_by_what_is_shown),
		FILES_TEST(full_table_starts_over),
		FILES_TEST(own_table_is_bounded),
		FILES_TEST(other_processes_are_not_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
