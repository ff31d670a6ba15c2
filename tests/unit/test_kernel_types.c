/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reducing a kernel's types: by name, complete, and at their offsets. The types of the kernel and
 * of an object are made here one by one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/kernel_types.h"

struct fixture {
	struct btf *kernel, *object, *reduced;
	int number; /* the kernel's `unsigned int` */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int number;

	if (!f)
		return -1;
	f->kernel = btf__new_empty();
	f->object = btf__new_empty();
	f->number = btf__add_int(f->kernel, "unsigned int", 4, 0);
	/* The object asks for `flags` and `inner` of a task, through two definitions of it. */
	number = btf__add_int(f->object, "int", 4, BTF_INT_SIGNED);
	btf__add_struct(f->object, "task", 8);
	btf__add_field(f->object, "flags", number, 0, 0);
	btf__add_struct(f->object, "task___older", 8);
	btf__add_field(f->object, "inner", number, 0, 0);
	btf__add_enum(f->object, "helpers", 4);
	*state = f;
	return number > 0 ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	btf__free(f->reduced);
	btf__free(f->object);
	btf__free(f->kernel);
	free(f);
	return 0;
}

static void reduce(struct fixture *f)
{
	assert_int_equal(kernel_types_reduced(f->kernel, f->object, &f->reduced), 0);
}

static const struct btf_type *type_of(const struct fixture *f, uint32_t id)
{
	return btf__type_by_id(f->reduced, id);
}

static const struct btf_type *find(const struct fixture *f, const char *name, uint32_t kind)
{
	int id = btf__find_by_name_kind(f->reduced, name, kind);

	return id > 0 ? type_of(f, (uint32_t)id) : NULL;
}

static const char *member_name(const struct fixture *f, const struct btf_type *type, int number)
{
	return btf__name_by_offset(f->reduced, btf_members(type)[number].name_off);
}

static void types_named_by_the_object_keep_their_offsets(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *task;

	btf__add_struct(f->kernel, "other", 4);
	btf__add_field(f->kernel, "flags", f->number, 0, 0);
	btf__add_struct(f->kernel, "task", 9000);
	btf__add_field(f->kernel, "state", f->number, 0, 0);
	btf__add_field(f->kernel, "flags", f->number, 71968, 0);
	reduce(f);
	assert_null(find(f, "other", BTF_KIND_STRUCT));
	task = find(f, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	assert_int_equal(task->size, 9000);
	assert_int_equal(btf_vlen(task), 1);
	assert_string_equal(member_name(f, task, 0), "flags");
	assert_int_equal(btf_member_bit_offset(task, 0), 71968);
	assert_int_equal(type_of(f, btf_members(task)[0].type)->size, 4);
}

/* Typedefs and qualifiers around a type do not matter; nested members are requested, too. */
static void a_nested_struct_keeps_its_members(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *task, *inner;
	int inside, type;

	inside = btf__add_struct(f->kernel, "inside", 12);
	btf__add_field(f->kernel, "nobody_asks", f->number, 0, 0);
	btf__add_field(f->kernel, "flags", f->number, 64, 0);
	type = btf__add_typedef(f->kernel, "inside_t", btf__add_const(f->kernel, inside));
	btf__add_struct(f->kernel, "task", 24);
	btf__add_field(f->kernel, "inner", type, 32, 0);
	reduce(f);
	task = find(f, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	inner = type_of(f, btf_members(task)[0].type);
	assert_true(btf_is_struct(inner));
	assert_int_equal(inner->size, 12);
	assert_int_equal(btf_vlen(inner), 1);
	assert_int_equal(btf_member_bit_offset(inner, 0), 64);
}

/* Most of mm_struct is in an unnamed struct, and parts of vm_area_struct are in unions. */
static void unnamed_members_are_searched(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *task, *choice;
	int type;

	type = btf__add_union(f->kernel, NULL, 8);
	btf__add_field(f->kernel, "flags", f->number, 0, 0);
	btf__add_field(f->kernel, "nobody_asks", f->number, 0, 0);
	btf__add_struct(f->kernel, "task", 16);
	btf__add_field(f->kernel, NULL, type, 64, 0);
	reduce(f);
	task = find(f, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	assert_int_equal(btf_vlen(task), 1);
	assert_int_equal(btf_member_bit_offset(task, 0), 64);
	choice = type_of(f, btf_members(task)[0].type);
	assert_true(btf_is_union(choice));
	assert_int_equal(btf_vlen(choice), 1);
	assert_string_equal(member_name(f, choice, 0), "flags");
}

static void pointers_and_arrays_are_kept(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *task, *array;
	int pointer, numbers;

	numbers = btf__add_array(f->kernel, f->number, f->number, 7);
	btf__add_struct(f->kernel, "task", 40);
	pointer = (int)btf__type_cnt(f->kernel);
	btf__add_field(f->kernel, "flags", numbers, 0, 0);
	btf__add_field(f->kernel, "inner", pointer, 256, 0);
	/* To the struct itself: what it points to is not followed. */
	assert_int_equal(btf__add_ptr(f->kernel, pointer - 1), pointer);
	reduce(f);
	task = find(f, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	array = type_of(f, btf_members(task)[0].type);
	assert_true(btf_is_array(array));
	assert_int_equal(btf_array(array)->nelems, 7);
	assert_true(btf_is_ptr(type_of(f, btf_members(task)[1].type)));
}

static void bit_fields_and_the_values_of_enums(void **state)
{
	struct fixture *f = *state;
	const struct btf_type *task, *helpers;

	btf__add_enum(f->kernel, "helpers", 4);
	btf__add_enum_value(f->kernel, "FIRST_HELPER", 1);
	btf__add_enum_value(f->kernel, "LAST_HELPER", 211);
	btf__add_struct(f->kernel, "task", 4);
	btf__add_field(f->kernel, "flags", f->number, 3, 5);
	reduce(f);
	task = find(f, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	assert_int_equal(btf_member_bitfield_size(task, 0), 5);
	assert_int_equal(btf_member_bit_offset(task, 0), 3);
	helpers = find(f, "helpers", BTF_KIND_ENUM);
	assert_non_null(helpers);
	assert_int_equal(btf_vlen(helpers), 2);
	assert_int_equal(btf_enum(helpers)[1].val, 211);
}

/* Two structs of one name are both there: libbpf sees whether they agree. */
static void types_of_equal_names_are_kept(void **state)
{
	struct fixture *f = *state;
	size_t count = 0;

	for (uint32_t i = 0; i < 2; i++) {
		btf__add_struct(f->kernel, "task", 4 + 4 * i);
		btf__add_field(f->kernel, "flags", f->number, 32 * i, 0);
	}
	reduce(f);
	for (uint32_t id = 1; id < btf__type_cnt(f->reduced); id++)
		count += btf_is_struct(type_of(f, id));
	assert_int_equal(count, 2);
}

/* Structs in structs, deeper than any kernel's: libbpf has to read such types by itself. */
static void too_deep_nesting_is_refused(void **state)
{
	struct fixture *f = *state;
	int type = f->number;

	for (int depth = 0; depth < 20; depth++) {
		int inside = type;

		type = btf__add_struct(f->kernel, "inside", 4);
		btf__add_field(f->kernel, "inner", inside, 0, 0);
	}
	btf__add_struct(f->kernel, "task", 4);
	btf__add_field(f->kernel, "inner", type, 0, 0);
	assert_int_equal(kernel_types_reduced(f->kernel, f->object, &f->reduced), -E2BIG);
	assert_null(f->reduced);
}

static void without_types_libbpf_reads_them_itself(void **state)
{
	(void)state;
	assert_null(kernel_types_path(NULL));
	assert_int_equal(kernel_types_reduce(NULL, NULL), 0);
	kernel_types_destroy(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(types_named_by_the_object_keep_their_offsets),
		CASE(a_nested_struct_keeps_its_members),
		CASE(unnamed_members_are_searched),
		CASE(pointers_and_arrays_are_kept),
		CASE(bit_fields_and_the_values_of_enums),
		CASE(types_of_equal_names_are_kept),
		CASE(too_deep_nesting_is_refused),
		CASE(without_types_libbpf_reads_them_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
