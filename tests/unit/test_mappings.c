/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/mappings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/sampler/process/modules.h"

enum { MODEL_PAGES = 512, PAGE = 4096, RANDOM_STEPS = 20000 };

static struct module libc_module = { .number = 1, .kind = MODULE_FILE };
static struct module program_module = { .number = 2, .kind = MODULE_FILE };
static struct module anon_module = { .number = 3, .kind = MODULE_ANON };

static struct mapping range(uint64_t start, uint64_t end, uint64_t off, struct module *module)
{
	return (struct mapping){ .start = start, .end = end, .file_off = off, .module = module };
}

static void add(
	struct mappings **m, uint64_t start, uint64_t end, uint64_t off, struct module *module)
{
	const struct mapping mapping = range(start, end, off, module);

	assert_int_equal(mappings_add(m, &mapping), 0);
}

static void expect(const struct mappings *m, size_t number, struct mapping wanted)
{
	const struct mapping *found = mappings_at(m, number);

	assert_non_null(found);
	assert_int_equal(found->start, wanted.start);
	assert_int_equal(found->end, wanted.end);
	assert_int_equal(found->file_off, wanted.file_off);
	assert_ptr_equal(found->module, wanted.module);
}

static void starts_empty(void **state)
{
	struct mappings *m = mappings_create();

	(void)state;
	assert_int_equal(mappings_count(m), 0);
	assert_null(mappings_at(m, 0));
	assert_null(mappings_find(m, 0x1000));
	assert_int_not_equal(mappings_generation(m), 0);
	mappings_unref(m);
	mappings_unref(NULL);
}

static void finds_only_inside(void **state)
{
	struct mappings *m = mappings_create();

	(void)state;
	add(&m, 0x5000, 0x7000, 0x2000, &libc_module);
	assert_null(mappings_find(m, 0x4fff));
	assert_ptr_equal(mappings_find(m, 0x5000)->module, &libc_module);
	assert_int_equal(mapping_file_off(mappings_find(m, 0x6fff), 0x6fff), 0x3fff);
	assert_null(mappings_find(m, 0x7000));
	mappings_unref(m);
}

static void reaches_the_end_of_the_address_space(void **state)
{
	struct mappings *m = mappings_create();

	(void)state;
	add(&m, 0, 0x1000, 0, &libc_module);
	add(&m, UINT64_MAX - 0xfff, UINT64_MAX, 0, &program_module);
	assert_ptr_equal(mappings_find(m, 0)->module, &libc_module);
	assert_ptr_equal(mappings_find(m, UINT64_MAX - 1)->module, &program_module);
	assert_null(mappings_find(m, UINT64_MAX));
	mappings_unref(m);
}

static void refuses_an_empty_range(void **state)
{
	struct mappings *m = mappings_create();
	const struct mapping empty = range(0x1000, 0x1000, 0, &libc_module);
	const struct mapping backwards = range(0x2000, 0x1000, 0, &libc_module);

	(void)state;
	assert_int_equal(mappings_add(&m, &empty), -EINVAL);
	assert_int_equal(mappings_add(&m, &backwards), -EINVAL);
	assert_int_equal(mappings_count(m), 0);
	mappings_unref(m);
}

static void cuts_the_middle_out(void **state)
{
	struct mappings *m = mappings_create();

	(void)state;
	add(&m, 0x1000, 0x9000, 0x1000, &libc_module);
	add(&m, 0x3000, 0x5000, 0, &program_module);
	assert_int_equal(mappings_count(m), 3);
	expect(m, 0, range(0x1000, 0x3000, 0x1000, &libc_module));
	expect(m, 1, range(0x3000, 0x5000, 0, &program_module));
	expect(m, 2, range(0x5000, 0x9000, 0x5000, &libc_module));
	mappings_unref(m);
}

static void removes_covered_mappings(void **state)
{
	struct mappings *m = mappings_create();

	(void)state;
	add(&m, 0x1000, 0x3000, 0, &libc_module);
	add(&m, 0x4000, 0x5000, 0, &libc_module);
	add(&m, 0x6000, 0x8000, 0x100, &libc_module);
	add(&m, 0x2000, 0x7000, 0, &program_module);
	assert_int_equal(mappings_count(m), 3);
	expect(m, 0, range(0x1000, 0x2000, 0, &libc_module));
	expect(m, 1, range(0x2000, 0x7000, 0, &program_module));
	expect(m, 2, range(0x7000, 0x8000, 0x1100, &libc_module));
	mappings_unref(m);
}

static void adding_the_same_again_changes_nothing(void **state)
{
	struct mappings *m = mappings_create(), *shared;
	uint64_t generation;

	(void)state;
	add(&m, 0x1000, 0x9000, 0, &libc_module);
	generation = mappings_generation(m);
	shared = mappings_ref(m);
	add(&m, 0x1000, 0x9000, 0, &libc_module);
	add(&m, 0x2000, 0x3000, 0x1000, &libc_module);
	assert_ptr_equal(m, shared);
	assert_int_equal(mappings_generation(m), generation);
	mappings_unref(shared);
	mappings_unref(m);
}

/* A JIT that adds its code piece by piece fills one mapping, not the whole table. */
static void joins_anonymous_neighbours_only(void **state)
{
	struct mappings *m = mappings_create();

	(void)state;
	add(&m, 0x1000, 0x2000, 0x1000, &anon_module);
	add(&m, 0x3000, 0x4000, 0x3000, &anon_module);
	assert_int_equal(mappings_count(m), 2);
	add(&m, 0x2000, 0x3000, 0x2000, &anon_module);
	assert_int_equal(mappings_count(m), 1);
	expect(m, 0, range(0x1000, 0x4000, 0x1000, &anon_module));
	add(&m, 0x8000, 0x9000, 0, &libc_module);
	add(&m, 0x9000, 0xa000, 0x1000, &libc_module);
	assert_int_equal(mappings_count(m), 3);
	mappings_unref(m);
}

static void a_shared_snapshot_stays_as_it_is(void **state)
{
	struct mappings *parent = mappings_create(), *child;
	uint64_t generation;

	(void)state;
	add(&parent, 0x1000, 0x2000, 0, &libc_module);
	generation = mappings_generation(parent);
	child = mappings_ref(parent);
	add(&child, 0x5000, 0x6000, 0, &program_module);
	assert_ptr_not_equal(child, parent);
	assert_int_equal(mappings_count(parent), 1);
	assert_int_equal(mappings_generation(parent), generation);
	assert_int_equal(mappings_count(child), 2);
	assert_int_not_equal(mappings_generation(child), generation);
	mappings_unref(parent);
	expect(child, 0, range(0x1000, 0x2000, 0, &libc_module));
	mappings_unref(child);
}

static void equal_generations_have_equal_content(void **state)
{
	struct mappings *a = mappings_create(), *b = mappings_create();

	(void)state;
	add(&a, 0x1000, 0x2000, 0, &libc_module);
	add(&a, 0x5000, 0x6000, 0, &program_module);
	add(&b, 0x5000, 0x6000, 0, &program_module);
	assert_int_not_equal(mappings_generation(a), mappings_generation(b));
	add(&b, 0x1000, 0x2000, 0, &libc_module);
	assert_int_equal(mappings_generation(a), mappings_generation(b));
	add(&b, 0x1000, 0x2000, 0x1000, &libc_module);
	assert_int_not_equal(mappings_generation(a), mappings_generation(b));
	mappings_unref(a);
	mappings_unref(b);
}

static void refuses_more_than_the_limit(void **state)
{
	struct mappings *m = mappings_create();
	const struct mapping split = range(0x10000, 0x10001, 0x10000, &anon_module);
	const struct mapping one_more = range(1, 2, 0, &libc_module);

	(void)state;
	/* Downwards, as the kernel places mappings; with gaps, so that none are joined. */
	for (uint64_t i = MAPPINGS_LIMIT; i > 0; i--)
		add(&m, i * 0x2000, i * 0x2000 + 0x1000, 0, &libc_module);
	assert_int_equal(mappings_count(m), MAPPINGS_LIMIT);
	assert_int_equal(mappings_add(&m, &one_more), -E2BIG);
	assert_int_equal(mappings_add(&m, &split), -E2BIG);
	assert_int_equal(mappings_count(m), MAPPINGS_LIMIT);
	/* A mapping that replaces others still fits. */
	add(&m, 0x2000, 0x5000, 0, &program_module);
	assert_int_equal(mappings_count(m), MAPPINGS_LIMIT - 1);
	mappings_unref(m);
}

/* Copies of a file are one module, but different files to the kernel. */
static void a_copy_of_a_file_replaces_it(void **state)
{
	struct mapping mapping = range(0x1000, 0x3000, 0, &libc_module);
	struct mappings *m = mappings_create();
	uint64_t generation;

	(void)state;
	mapping.file.inode = 7;
	assert_int_equal(mappings_add(&m, &mapping), 0);
	generation = mappings_generation(m);
	mapping.file.inode = 8;
	assert_int_equal(mappings_add(&m, &mapping), 0);
	assert_int_equal(mappings_count(m), 1);
	assert_int_equal(mappings_at(m, 0)->file.inode, 8);
	assert_int_equal(mappings_generation(m), generation);
	mappings_unref(m);
}

/* As agent/sampler/unwind/unwind.c builds it from the data of BPF. */
static struct seen_mapping seen(uint64_t start, uint64_t inode)
{
	return (struct seen_mapping){ .start = start,
		.end = start + 0x1000,
		.file = { .device = 1,
			.inode = inode,
			.mtime_ns = 10,
			.size_bytes = 20,
			.generation = 30 } };
}

static void is_seen_as_the_same_bytes_of_the_same_file(void **state)
{
	struct mapping mapping = range(0x1000, 0x3000, 0, &libc_module);
	struct seen_mapping other = seen(0x1000, 7);

	(void)state;
	/* Unknown fields are not compared, except the inode number. */
	mapping.file = (struct file_id){ .device = 1, .inode = 7 };
	assert_true(mapping_is_seen(&mapping, &other));
	mapping.file = other.file;
	assert_true(mapping_is_seen(&mapping, &other));
	other.file.generation++;
	assert_false(mapping_is_seen(&mapping, &other));
	other = seen(0x2000, 7);
	assert_false(mapping_is_seen(&mapping, &other));
	other.file_off = 0x1000;
	assert_true(mapping_is_seen(&mapping, &other));
	mapping.file.inode = 0;
	assert_false(mapping_is_seen(&mapping, &other));
	other = (struct seen_mapping){ .start = 0x1000, .end = 0x2000, .vdso = true };
	assert_false(mapping_is_seen(&mapping, &other));
}

static void memory_is_seen_as_memory(void **state)
{
	const struct mapping memory = range(0x1000, 0x3000, 0x1000, &anon_module);
	const struct seen_mapping file = seen(0x1000, 7);
	const struct seen_mapping nothing = { .start = 0x2000, .end = 0x8000 };

	(void)state;
	assert_true(mapping_is_seen(&memory, &nothing));
	assert_false(mapping_is_seen(&memory, &file));
}

/* The naive model: what each page is. */
struct model_page {
	struct module *module;
	uint64_t file_off;
};

static void compare_with_model(const struct mappings *m, const struct model_page *model)
{
	uint64_t last_end = 0;

	for (size_t i = 0; i < mappings_count(m); i++) {
		assert_true(mappings_at(m, i)->start >= last_end);
		assert_true(mappings_at(m, i)->end > mappings_at(m, i)->start);
		last_end = mappings_at(m, i)->end;
	}
	for (uint64_t page = 0; page < MODEL_PAGES; page++) {
		const struct mapping *found = mappings_find(m, page * PAGE + 7);

		assert_ptr_equal(found ? found->module : NULL, model[page].module);
		if (found)
			assert_int_equal(
				mapping_file_off(found, page * PAGE), model[page].file_off);
	}
}

static void random_step(struct mappings **m, struct model_page *model)
{
	static struct module *const modules[] = { &libc_module, &program_module, &anon_module };
	uint64_t first = (uint64_t)rand() % MODEL_PAGES;
	uint64_t count = 1 + (uint64_t)rand() % (rand() % 4 ? 4 : 64);
	uint64_t end = first + count < MODEL_PAGES ? first + count : MODEL_PAGES;
	struct module *module = modules[rand() % 3];
	uint64_t off = module->kind == MODULE_ANON ? first * PAGE : (uint64_t)rand() % 8 * PAGE;

	add(m, first * PAGE, end * PAGE, off, module);
	for (uint64_t page = first; page < end; page++)
		model[page] = (struct model_page){ module, off + (page - first) * PAGE };
}

static void agrees_with_a_simple_model(void **state)
{
	struct mappings *m = mappings_create(), *old = NULL;
	struct model_page model[MODEL_PAGES] = { 0 }, old_model[MODEL_PAGES] = { 0 };

	(void)state;
	srand(42);
	for (int step = 0; step < RANDOM_STEPS; step++) {
		random_step(&m, model);
		if (step % 16 == 0)
			compare_with_model(m, model);
		if (step % 256 != 0)
			continue;
		/* An older snapshot has not changed. */
		if (old)
			compare_with_model(old, old_model);
		mappings_unref(old);
		old = mappings_ref(m);
		memcpy(old_model, model, sizeof(model));
	}
	mappings_unref(old);
	mappings_unref(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty),
		cmocka_unit_test(finds_only_inside),
		cmocka_unit_test(reaches_the_end_of_the_address_space),
		cmocka_unit_test(refuses_an_empty_range),
		cmocka_unit_test(cuts_the_middle_out),
		cmocka_unit_test(removes_covered_mappings),
		cmocka_unit_test(adding_the_same_again_changes_nothing),
		cmocka_unit_test(joins_anonymous_neighbours_only),
		cmocka_unit_test(a_shared_snapshot_stays_as_it_is),
		cmocka_unit_test(equal_generations_have_equal_content),
		cmocka_unit_test(refuses_more_than_the_limit),
		cmocka_unit_test(a_copy_of_a_file_replaces_it),
		cmocka_unit_test(is_seen_as_the_same_bytes_of_the_same_file),
		cmocka_unit_test(memory_is_seen_as_memory),
		cmocka_unit_test(agrees_with_a_simple_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
