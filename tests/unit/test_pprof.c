/* SPDX-License-Identifier: Apache-2.0 */
/* The builder's output, decoded with the generated code and compared with its input. */
#include <errno.h>
#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "pprof/pprof.h"
#include "proto/profile.pb-c.h"

DEFINE_AUTO(pprof);
#define autopprof autocall(auto_pprof_destroy) struct pprof
#define autobuffer autocall(buffer_deinit) struct buffer
#define automessage autocall(free_message) Perftools__Profiles__Profile

static void free_message(Perftools__Profiles__Profile **message)
{
	perftools__profiles__profile__free_unpacked(*message, NULL);
}

static struct pprof_options cpu_options(void)
{
	return (struct pprof_options){
		.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.type_count = 2,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 10101010,
		.time_ns = INT64_C(1700000000000000000),
		.duration_ns = INT64_C(10000000000),
	};
}

static struct pprof *new_cpu_pprof(void)
{
	struct pprof_options options = cpu_options();
	struct pprof *p;

	assert_int_equal(pprof_create(&options, &p), 0);
	return p;
}

static Perftools__Profiles__Profile *decode(struct pprof *p)
{
	autobuffer out;
	Perftools__Profiles__Profile *message;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(pprof_encode(p, false, &out), 0);
	message = perftools__profiles__profile__unpack(NULL, out.size, out.bytes);
	assert_non_null(message);
	return message;
}

static const char *string_at(const Perftools__Profiles__Profile *message, int64_t number)
{
	assert_in_range(number, 0, message->n_string_table - 1);
	return message->string_table[number];
}

static uint64_t add_mapping(struct pprof *p, const char *file)
{
	struct pprof_mapping mapping = { 0x1000, 0x9000, 0x1000, file, "abcd" };
	uint64_t id;

	assert_int_equal(pprof_mapping(p, &mapping, &id), 0);
	return id;
}

static uint64_t add_location(
	struct pprof *p, uint64_t mapping, uint64_t address, const struct pprof_line *line)
{
	uint64_t id;

	assert_int_equal(pprof_location(p, mapping, address, line, line ? 1 : 0, &id), 0);
	return id;
}

static void add_sample(struct pprof *p, uint64_t location, int64_t count, int64_t ns)
{
	assert_int_equal(pprof_sample(p, &location, 1, (int64_t[]){ count, ns }, NULL, 0), 0);
}

static const struct pprof_line main_line = { "main", "main", "/src/main.c", 12, 3, 10 };

static void test_empty_profile_has_its_head(void **state)
{
	autopprof *p = new_cpu_pprof();
	automessage *message = decode(p);

	(void)state;
	assert_string_equal(string_at(message, 0), "");
	assert_int_equal(message->n_sample_type, 2);
	assert_string_equal(string_at(message, message->sample_type[0]->type), "samples");
	assert_string_equal(string_at(message, message->sample_type[0]->unit), "count");
	assert_string_equal(string_at(message, message->sample_type[1]->type), "cpu");
	assert_string_equal(string_at(message, message->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(string_at(message, message->default_sample_type), "cpu");
	assert_string_equal(string_at(message, message->period_type->type), "cpu");
	assert_string_equal(string_at(message, message->period_type->unit), "nanoseconds");
	assert_int_equal(message->period, 10101010);
	assert_int_equal(message->time_nanos, INT64_C(1700000000000000000));
	assert_int_equal(message->duration_nanos, INT64_C(10000000000));
	assert_int_equal(message->n_sample, 0);
	assert_int_equal(pprof_sample_count(p), 0);
}

static void test_ids_count_from_one_in_order_of_first_use(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t first = add_mapping(p, "/bin/a"), second = add_mapping(p, "/bin/b");

	(void)state;
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(add_mapping(p, "/bin/a"), 1);
	assert_int_equal(add_location(p, second, 0x2000, &main_line), 1);
	assert_int_equal(add_location(p, first, 0x2000, &main_line), 2);
	assert_int_equal(add_location(p, first, 0x2001, NULL), 3);
	assert_int_equal(add_location(p, second, 0x2000, &main_line), 1);

	automessage *message = decode(p);

	/* The location without a name has one more mapping. */
	assert_int_equal(message->n_mapping, 3);
	assert_int_equal(message->n_location, 3);
	assert_int_equal(message->n_function, 1);
	for (size_t i = 0; i < message->n_mapping; i++)
		assert_int_equal(message->mapping[i]->id, i + 1);
	for (size_t i = 0; i < message->n_location; i++)
		assert_int_equal(message->location[i]->id, i + 1);
	assert_int_equal(message->function[0]->id, 1);
	assert_string_equal(string_at(message, message->mapping[0]->filename), "/bin/a");
	assert_int_equal(message->location[0]->mapping_id, 2);
}

static void test_mapping_fields_survive(void **state)
{
	autopprof *p = new_cpu_pprof();
	struct pprof_mapping given = { 0xffffffff81000000, 0xffffffff82000000, 0x200000,
		"[kernel.kallsyms]", "0123456789abcdef" };
	uint64_t id;

	(void)state;
	assert_int_equal(pprof_mapping(p, &given, &id), 0);

	automessage *message = decode(p);
	const Perftools__Profiles__Mapping *mapping = message->mapping[0];

	assert_int_equal(mapping->memory_start, given.start);
	assert_int_equal(mapping->memory_limit, given.limit);
	assert_int_equal(mapping->file_offset, given.offset);
	assert_string_equal(string_at(message, mapping->filename), given.file);
	assert_string_equal(string_at(message, mapping->build_id), given.build_id);
}

static void test_location_keeps_inlined_lines_in_order(void **state)
{
	autopprof *p = new_cpu_pprof();
	struct pprof_line lines[] = { { "inner()", "_Z5innerv", "/src/i.h", 7, 1, 5 },
		{ "outer()", "_Z5outerv", "/src/o.cc", 30, 2, 20 } };
	uint64_t id;

	(void)state;
	assert_int_equal(pprof_location(p, add_mapping(p, "/bin/a"), 0x1234, lines, 2, &id), 0);

	automessage *message = decode(p);
	const Perftools__Profiles__Location *location = message->location[0];

	assert_int_equal(location->address, 0x1234);
	assert_int_equal(location->n_line, 2);
	for (size_t i = 0; i < 2; i++) {
		const Perftools__Profiles__Function *function =
			message->function[location->line[i]->function_id - 1];

		assert_string_equal(string_at(message, function->name), lines[i].name);
		assert_string_equal(
			string_at(message, function->system_name), lines[i].system_name);
		assert_string_equal(string_at(message, function->filename), lines[i].file);
		assert_int_equal(function->start_line, lines[i].start_line);
		assert_int_equal(location->line[i]->line, lines[i].line);
		assert_int_equal(location->line[i]->column, lines[i].column);
	}
}

static void test_one_address_with_two_names_is_two_locations(void **state)
{
	autopprof *p = new_cpu_pprof();
	struct pprof_line other = { "jitted", "jitted", "", 0, 0, 0 };

	(void)state;
	assert_int_equal(add_location(p, 0, 0x7f00, &main_line), 1);
	assert_int_equal(add_location(p, 0, 0x7f00, &other), 2);
	assert_int_equal(add_location(p, 0, 0x7f00, NULL), 3);
}

static void test_what_is_no_line_number_is_unknown(void **state)
{
	autopprof *p = new_cpu_pprof();
	struct pprof_line line = { "f", "f", "f.c", -1, INT64_MAX, -9 };

	(void)state;
	add_location(p, add_mapping(p, "/bin/a"), 1, &line);

	automessage *message = decode(p);

	assert_int_equal(message->location[0]->line[0]->line, 0);
	assert_int_equal(message->location[0]->line[0]->column, 0);
	assert_int_equal(message->function[0]->start_line, 0);
	assert_false(message->mapping[0]->has_line_numbers);
}

static void test_flags_hold_when_every_location_is_whole(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t mapping = add_mapping(p, "/bin/a");

	(void)state;
	add_location(p, mapping, 0x10, &main_line);

	automessage *message = decode(p);

	assert_true(message->mapping[0]->has_functions);
	assert_true(message->mapping[0]->has_filenames);
	assert_true(message->mapping[0]->has_line_numbers);
	assert_true(message->mapping[0]->has_inline_frames);
}

static void test_addresses_without_a_name_have_a_mapping_without_flags(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t mapping = add_mapping(p, "/bin/a"), whole = add_mapping(p, "/bin/b");
	Perftools__Profiles__Mapping *named, *unnamed;

	(void)state;
	add_location(p, mapping, 0x1010, &main_line);
	add_location(p, mapping, 0x3011, NULL);
	add_location(p, whole, 0x1011, &main_line);

	automessage *message = decode(p);

	assert_int_equal(message->n_mapping, 3);
	named = message->mapping[0];
	unnamed = message->mapping[2];
	assert_true(named->has_functions && named->has_filenames && named->has_line_numbers &&
		    named->has_inline_frames);
	assert_true(message->mapping[1]->has_functions);
	assert_false(unnamed->has_functions || unnamed->has_filenames ||
		     unnamed->has_line_numbers || unnamed->has_inline_frames);
	assert_int_equal(unnamed->id, 3);
	assert_int_equal(unnamed->build_id, named->build_id);
	assert_int_equal(unnamed->filename, named->filename);
	assert_int_equal(unnamed->memory_start, 0x3000);
	assert_int_equal(unnamed->memory_limit, 0x4000);
	assert_int_equal(unnamed->file_offset,
		named->file_offset + unnamed->memory_start - named->memory_start);
	assert_int_equal(message->location[0]->mapping_id, 1);
	assert_int_equal(message->location[1]->mapping_id, 3);
	assert_int_equal(message->location[2]->mapping_id, 2);
}

/* Merging by size would otherwise join the two mappings, with the flags of the first. */
static void test_the_mapping_without_flags_is_never_as_large(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t mapping = add_mapping(p, "/bin/a");

	(void)state;
	add_location(p, mapping, 0x2010, &main_line);
	add_location(p, mapping, 0x1001, NULL);
	add_location(p, mapping, 0x8ffe, NULL);

	automessage *message = decode(p);
	Perftools__Profiles__Mapping *unnamed = message->mapping[1];

	assert_int_equal(unnamed->memory_start, 0x1001);
	assert_int_equal(unnamed->memory_limit, 0x8fff);
	assert_int_equal(unnamed->file_offset, message->mapping[0]->file_offset + 1);
}

static void test_addresses_outside_of_their_mapping_leave_it_whole(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t mapping = add_mapping(p, "/bin/a");

	(void)state;
	add_location(p, mapping, 0x2010, &main_line);
	add_location(p, mapping, UINT64_MAX, NULL);

	automessage *message = decode(p);

	assert_int_equal(message->mapping[1]->memory_start, message->mapping[0]->memory_start);
	assert_int_equal(message->mapping[1]->memory_limit, message->mapping[0]->memory_limit);
	assert_false(message->mapping[1]->has_functions);
}

static void test_names_without_lines_give_functions_only(void **state)
{
	autopprof *p = new_cpu_pprof();
	struct pprof_line symbol = { "memcpy", "memcpy", "", 0, 0, 0 };

	(void)state;
	add_location(p, add_mapping(p, "/lib/libc.so.6"), 0x10, &symbol);

	automessage *message = decode(p);

	assert_true(message->mapping[0]->has_functions);
	assert_false(message->mapping[0]->has_filenames);
	assert_false(message->mapping[0]->has_line_numbers);
	assert_false(message->mapping[0]->has_inline_frames);
}

/* One nameless line of an inline chain is enough: with the flag no viewer would look it up. */
static void test_a_line_without_a_name_is_no_name(void **state)
{
	static const struct pprof_line nameless = { "", "", "/src/main.c", 12, 3, 10 };
	const struct pprof_line chains[][2] = { { main_line, nameless }, { nameless, main_line },
		{ main_line, main_line } };
	autopprof *p = new_cpu_pprof();
	uint64_t mapping = add_mapping(p, "/bin/a"), id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(chains); i++)
		assert_int_equal(
			pprof_location(p, mapping, 0x2000 + i * 0x10, chains[i], 2, &id), 0);

	automessage *message = decode(p);

	assert_int_equal(message->n_mapping, 2);
	assert_true(message->mapping[0]->has_functions);
	assert_false(message->mapping[1]->has_functions);
	assert_int_equal(message->location[0]->mapping_id, 2);
	assert_int_equal(message->location[1]->mapping_id, 2);
	assert_int_equal(message->location[2]->mapping_id, 1);
}

static void test_a_stand_in_for_a_name_claims_no_names(void **state)
{
	static const struct pprof_line start = { .name = "a+0x2000", "", "", .nameless = true };
	autopprof *p = new_cpu_pprof();
	uint64_t mapping = add_mapping(p, "/bin/a"), id;

	(void)state;
	assert_int_equal(pprof_location(p, mapping, 0x2000, &start, 1, &id), 0);
	assert_int_equal(pprof_location(p, mapping, 0x2010, &main_line, 1, &id), 0);

	automessage *message = decode(p);

	assert_int_equal(message->n_mapping, 2);
	assert_int_equal(message->location[0]->mapping_id, 2);
	assert_int_equal(message->location[0]->n_line, 1);
	assert_false(message->mapping[1]->has_functions);
	assert_true(message->mapping[0]->has_functions);
}

static void test_what_stands_in_for_a_name(void **)
{
	assert_true(pprof_is_nameless("libfoo.so+0x62f00", ""));
	assert_true(pprof_is_nameless("c++ +1+0x0", ""));
	assert_false(pprof_is_nameless("libfoo.so+0x62f00", "libfoo.so+0x62f00"));
	assert_false(pprof_is_nameless("libfoo.so+0x", ""));
	assert_false(pprof_is_nameless("libfoo.so+0x6g", ""));
	assert_false(pprof_is_nameless("operator+", ""));
	assert_false(pprof_is_nameless("", ""));
}

static void test_mapping_without_locations_has_no_flag(void **state)
{
	autopprof *p = new_cpu_pprof();

	(void)state;
	add_mapping(p, "/bin/a");

	automessage *message = decode(p);

	assert_false(message->mapping[0]->has_functions);
	assert_false(message->mapping[0]->has_line_numbers);
}

static void test_no_inlines_option_takes_the_inline_flag(void **state)
{
	struct pprof_options options = cpu_options();
	autopprof *p = NULL;

	(void)state;
	options.no_inlines = true;
	assert_int_equal(pprof_create(&options, &p), 0);
	add_location(p, add_mapping(p, "/bin/a"), 0x10, &main_line);

	automessage *message = decode(p);

	assert_true(message->mapping[0]->has_line_numbers);
	assert_false(message->mapping[0]->has_inline_frames);
}

static void test_equal_samples_are_summed(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t a = add_location(p, 0, 1, NULL), b = add_location(p, 0, 2, NULL);

	(void)state;
	add_sample(p, a, 1, 100);
	add_sample(p, b, 1, 50);
	add_sample(p, a, 2, 200);
	assert_int_equal(pprof_sample_count(p), 2);

	automessage *message = decode(p);

	assert_int_equal(message->n_sample, 2);
	assert_int_equal(message->sample[0]->n_value, 2);
	assert_int_equal(message->sample[0]->value[0], 3);
	assert_int_equal(message->sample[0]->value[1], 300);
	assert_int_equal(message->sample[1]->value[1], 50);
	assert_int_equal(message->sample[1]->n_location_id, 1);
	assert_int_equal(message->sample[1]->location_id[0], b);
}

static void test_sums_stop_at_the_largest_number(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t a = add_location(p, 0, 1, NULL);

	(void)state;
	add_sample(p, a, 1, INT64_MAX - 1);
	add_sample(p, a, 1, 5);

	automessage *message = decode(p);

	assert_int_equal(message->sample[0]->value[1], INT64_MAX);
}

static void test_labels_tell_samples_apart(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t a = add_location(p, 0, 1, NULL);
	int64_t values[] = { 1, 10 };
	struct pprof_label one[] = { { "tid", NULL, 1, "id" }, { "comm", "sh", 0, NULL } };
	struct pprof_label turned[] = { { "comm", "sh", 0, NULL }, { "tid", NULL, 1, "id" } };
	struct pprof_label two[] = { { "tid", NULL, 2, "id" }, { "comm", "sh", 0, NULL } };

	(void)state;
	assert_int_equal(pprof_sample(p, &a, 1, values, one, 2), 0);
	assert_int_equal(pprof_sample(p, &a, 1, values, two, 2), 0);
	assert_int_equal(pprof_sample(p, &a, 1, values, turned, 2), 0);
	assert_int_equal(pprof_sample_count(p), 2);

	automessage *message = decode(p);

	assert_int_equal(message->sample[0]->value[0], 2);
	assert_int_equal(message->sample[0]->n_label, 2);
	assert_string_equal(string_at(message, message->sample[0]->label[0]->key), "tid");
	assert_int_equal(message->sample[0]->label[0]->num, 1);
	assert_string_equal(string_at(message, message->sample[0]->label[0]->num_unit), "id");
	assert_int_equal(message->sample[0]->label[0]->str, 0);
	assert_string_equal(string_at(message, message->sample[0]->label[1]->str), "sh");
	assert_int_equal(message->sample[0]->label[1]->num, 0);
	assert_int_equal(message->sample[1]->label[0]->num, 2);
}

static void test_cpu_zero_keeps_its_unit(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t a = add_location(p, 0, 1, NULL);
	struct pprof_label label = { "cpu", NULL, 0, "id" };

	(void)state;
	assert_int_equal(pprof_sample(p, &a, 1, (int64_t[]){ 1, 1 }, &label, 1), 0);

	automessage *message = decode(p);

	assert_int_equal(message->sample[0]->n_label, 1);
	assert_int_equal(message->sample[0]->label[0]->num, 0);
	assert_string_equal(string_at(message, message->sample[0]->label[0]->num_unit), "id");
}

static void test_a_label_key_stands_once_and_empty_texts_do_not(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t a = add_location(p, 0, 1, NULL);
	struct pprof_label labels[] = { { "k", "first", 0, NULL }, { "k", "second", 0, NULL },
		{ "empty", "", 0, NULL } };

	(void)state;
	assert_int_equal(pprof_sample(p, &a, 1, (int64_t[]){ 1, 1 }, labels, 3), 0);

	automessage *message = decode(p);

	assert_int_equal(message->sample[0]->n_label, 1);
	assert_string_equal(string_at(message, message->sample[0]->label[0]->str), "first");
}

static void test_strings_are_valid_utf8_whatever_came_in(void **state)
{
	autopprof *p = new_cpu_pprof();
	struct pprof_line line = { "bad\xff name", "\xc3\x28", "/tmp/\xed\xa0\x80", 1, 0, 0 };
	struct pprof_label label = { "comm", "caf\xc3\xa9\x80", 0, NULL };
	uint64_t a = add_location(p, add_mapping(p, "/\x80/bin"), 1, &line);

	(void)state;
	assert_int_equal(pprof_sample(p, &a, 1, (int64_t[]){ 1, 1 }, &label, 1), 0);
	assert_int_equal(pprof_comment(p, "\xfe"), 0);

	automessage *message = decode(p);

	for (size_t i = 0; i < message->n_string_table; i++)
		assert_true(
			utf8_is_clean(message->string_table[i], strlen(message->string_table[i])));
	assert_string_equal(string_at(message, message->function[0]->name), "bad? name");
	assert_string_equal(string_at(message, message->sample[0]->label[0]->str), "caf\xc3\xa9?");
	assert_string_equal(string_at(message, message->comment[0]), "?");
}

static void test_long_string_is_cut_between_characters(void **state)
{
	autopprof *p = new_cpu_pprof();
	autofree char *text = malloc(PPROF_MAX_STRING + 10);
	struct pprof_line line = { text, "", "", 0, 0, 0 };

	(void)state;
	memset(text, 'x', PPROF_MAX_STRING + 9);
	text[PPROF_MAX_STRING + 9] = 0;
	memcpy(text + PPROF_MAX_STRING - 1, "\xe2\x82\xac", 3); /* a euro sign across the limit */
	add_location(p, 0, 1, &line);

	automessage *message = decode(p);
	const char *kept = string_at(message, message->function[0]->name);

	assert_int_equal(strlen(kept), PPROF_MAX_STRING - 1);
	assert_int_equal(strspn(kept, "x"), PPROF_MAX_STRING - 1);
}

static void test_each_string_stands_once(void **state)
{
	autopprof *p = new_cpu_pprof();

	(void)state;
	for (uint64_t address = 1; address < 50; address++)
		add_location(p, add_mapping(p, "/bin/a"), address, &main_line);

	automessage *message = decode(p);

	for (size_t i = 0; i < message->n_string_table; i++) {
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(message->string_table[i], message->string_table[j]);
	}
	assert_int_equal(message->n_function, 1);
	assert_int_equal(message->n_location, 49);
}

static void test_ids_never_given_out_are_refused(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t id = 77, none = 0, next = 2;
	int64_t values[] = { 1, 1 };

	(void)state;
	assert_int_equal(pprof_location(p, 1, 0, NULL, 0, &id), -ENOENT);
	assert_int_equal(id, 77);
	add_location(p, 0, 1, NULL);
	assert_int_equal(pprof_sample(p, &none, 1, values, NULL, 0), -ENOENT);
	assert_int_equal(pprof_sample(p, &next, 1, values, NULL, 0), -ENOENT);
	assert_int_equal(pprof_sample_count(p), 0);
}

static void test_too_many_of_anything_is_refused(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t locations[PPROF_MAX_FRAMES + 1], id;
	struct pprof_label labels[PPROF_MAX_LABELS + 1];
	struct pprof_line lines[PPROF_MAX_LINES + 1];
	int64_t values[] = { 1, 1 };
	char key[32];
	int err;

	(void)state;
	for (size_t i = 0; i < PPROF_MAX_LABELS + 1; i++)
		labels[i] = (struct pprof_label){ "key", "text", 0, NULL };
	for (size_t i = 0; i < PPROF_MAX_LINES + 1; i++)
		lines[i] = main_line;
	add_location(p, 0, 1, NULL);
	for (size_t i = 0; i < PPROF_MAX_FRAMES + 1; i++)
		locations[i] = 1;
	assert_int_equal(pprof_sample(p, locations, PPROF_MAX_FRAMES + 1, values, NULL, 0), -E2BIG);
	assert_int_equal(
		pprof_sample(p, locations, 1, values, labels, PPROF_MAX_LABELS + 1), -E2BIG);
	assert_int_equal(pprof_location(p, 0, 1, lines, PPROF_MAX_LINES + 1, &id), -E2BIG);
	assert_int_equal(pprof_sample(p, locations, PPROF_MAX_FRAMES, values, NULL, 0), 0);
	assert_int_equal(pprof_location(p, 0, 1, lines, PPROF_MAX_LINES, &id), 0);
	for (int i = 0;; i++) {
		snprintf(key, sizeof(key), "comment %d", i);
		err = pprof_comment(p, key);
		if (err)
			break;
		assert_in_range(i, 0, 100000);
	}
	assert_int_equal(err, -E2BIG);
	free_message(&(Perftools__Profiles__Profile *){ decode(p) });
}

static void test_a_sample_with_every_label_and_frame_survives(void **state)
{
	autopprof *p = new_cpu_pprof();
	uint64_t locations[PPROF_MAX_FRAMES];
	struct pprof_label labels[PPROF_MAX_LABELS];
	char keys[PPROF_MAX_LABELS][32];

	(void)state;
	for (size_t i = 0; i < PPROF_MAX_LABELS; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key%zu", PPROF_MAX_LABELS - i);
		labels[i] = (struct pprof_label){ keys[i], NULL, (int64_t)i, "id" };
	}
	for (size_t i = 0; i < PPROF_MAX_FRAMES; i++)
		locations[i] = add_location(p, 0, i, NULL);
	assert_int_equal(pprof_sample(p, locations, PPROF_MAX_FRAMES, (int64_t[]){ 1, 2 }, labels,
				 PPROF_MAX_LABELS),
		0);

	automessage *message = decode(p);

	assert_int_equal(message->sample[0]->n_label, PPROF_MAX_LABELS);
	assert_int_equal(message->sample[0]->n_location_id, PPROF_MAX_FRAMES);
	for (size_t i = 0; i < PPROF_MAX_FRAMES; i++)
		assert_int_equal(message->sample[0]->location_id[i], locations[i]);
}

static void test_memory_limit_refuses_and_what_is_there_still_encodes(void **state)
{
	struct pprof_options options = cpu_options();
	autopprof *p = NULL;
	uint64_t id, last = 0;
	int err = 0;

	(void)state;
	options.limit_bytes = 1 << 20;
	assert_int_equal(pprof_create(&options, &p), 0);
	for (uint64_t address = 0; !err && address < 1000000; address++) {
		err = pprof_location(p, 0, address, NULL, 0, &id);
		if (!err)
			last = id;
	}
	assert_int_equal(err, -E2BIG);
	assert_in_range(pprof_bytes(p), 1 << 19, 2 << 20);

	automessage *message = decode(p);

	assert_int_equal(message->n_location, last);
}

static void test_output_limit_is_an_error(void **state)
{
	autopprof *p = new_cpu_pprof();
	autobuffer small;

	(void)state;
	for (int gzip = 0; gzip < 2; gzip++) {
		buffer_init(&small, 16);
		assert_int_equal(pprof_encode(p, gzip, &small), -E2BIG);
		assert_int_equal(small.size, 0);
	}
}

static void test_same_calls_same_bytes(void **state)
{
	struct buffer outputs[2];

	(void)state;
	for (size_t run = 0; run < 2; run++) {
		autopprof *p = new_cpu_pprof();

		for (uint64_t i = 0; i < 500; i++)
			add_sample(p, add_location(p, add_mapping(p, "/bin/a"), i, &main_line), 1,
				(int64_t)i);
		buffer_init(&outputs[run], SIZE_MAX);
		assert_int_equal(pprof_encode(p, true, &outputs[run]), 0);
	}
	assert_int_equal(outputs[0].size, outputs[1].size);
	assert_memory_equal(outputs[0].bytes, outputs[1].bytes, outputs[0].size);
	buffer_deinit(&outputs[0]);
	buffer_deinit(&outputs[1]);
}

static void test_failed_encode_leaves_the_buffer_as_it_was(void **state)
{
	autopprof *p = new_cpu_pprof();
	autobuffer out;

	(void)state;
	for (uint64_t address = 0; address < 100; address++)
		add_location(p, 0, address, NULL);
	buffer_init(&out, 200);
	buffer_string(&out, "head");
	assert_int_equal(pprof_encode(p, false, &out), -E2BIG);
	assert_int_equal(out.size, 4);
}

static void free_decompressor(struct libdeflate_decompressor **d)
{
	libdeflate_free_decompressor(*d);
}

static void test_gzip_holds_the_plain_message(void **state)
{
	autopprof *p = new_cpu_pprof();
	autobuffer plain, packed;
	autofree uint8_t *unpacked = NULL;
	autocall(free_decompressor) struct libdeflate_decompressor *d =
		libdeflate_alloc_decompressor();
	size_t size;

	(void)state;
	buffer_init(&plain, SIZE_MAX);
	buffer_init(&packed, SIZE_MAX);
	add_sample(p, add_location(p, add_mapping(p, "/bin/a"), 5, &main_line), 1, 2);
	assert_int_equal(pprof_encode(p, false, &plain), 0);
	assert_int_equal(pprof_encode(p, true, &packed), 0);
	unpacked = malloc(plain.size);
	assert_int_equal(libdeflate_gzip_decompress(
				 d, packed.bytes, packed.size, unpacked, plain.size, &size),
		LIBDEFLATE_SUCCESS);
	assert_int_equal(size, plain.size);
	assert_memory_equal(unpacked, plain.bytes, size);
}

static void test_encoding_appends(void **state)
{
	autopprof *p = new_cpu_pprof();
	autobuffer out;

	(void)state;
	buffer_init(&out, SIZE_MAX);
	assert_int_equal(buffer_string(&out, "head"), 0);
	assert_int_equal(pprof_encode(p, true, &out), 0);
	assert_memory_equal(out.bytes, "head\x1f\x8b", 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_profile_has_its_head),
		cmocka_unit_test(test_ids_count_from_one_in_order_of_first_use),
		cmocka_unit_test(test_mapping_fields_survive),
		cmocka_unit_test(test_location_keeps_inlined_lines_in_order),
		cmocka_unit_test(test_one_address_with_two_names_is_two_locations),
		cmocka_unit_test(test_what_is_no_line_number_is_unknown),
		cmocka_unit_test(test_flags_hold_when_every_location_is_whole),
		cmocka_unit_test(test_addresses_without_a_name_have_a_mapping_without_flags),
		cmocka_unit_test(test_the_mapping_without_flags_is_never_as_large),
		cmocka_unit_test(test_addresses_outside_of_their_mapping_leave_it_whole),
		cmocka_unit_test(test_names_without_lines_give_functions_only),
		cmocka_unit_test(test_a_line_without_a_name_is_no_name),
		cmocka_unit_test(test_a_stand_in_for_a_name_claims_no_names),
		cmocka_unit_test(test_what_stands_in_for_a_name),
		cmocka_unit_test(test_mapping_without_locations_has_no_flag),
		cmocka_unit_test(test_no_inlines_option_takes_the_inline_flag),
		cmocka_unit_test(test_equal_samples_are_summed),
		cmocka_unit_test(test_sums_stop_at_the_largest_number),
		cmocka_unit_test(test_labels_tell_samples_apart),
		cmocka_unit_test(test_cpu_zero_keeps_its_unit),
		cmocka_unit_test(test_a_label_key_stands_once_and_empty_texts_do_not),
		cmocka_unit_test(test_strings_are_valid_utf8_whatever_came_in),
		cmocka_unit_test(test_long_string_is_cut_between_characters),
		cmocka_unit_test(test_each_string_stands_once),
		cmocka_unit_test(test_ids_never_given_out_are_refused),
		cmocka_unit_test(test_too_many_of_anything_is_refused),
		cmocka_unit_test(test_a_sample_with_every_label_and_frame_survives),
		cmocka_unit_test(test_memory_limit_refuses_and_what_is_there_still_encodes),
		cmocka_unit_test(test_output_limit_is_an_error),
		cmocka_unit_test(test_same_calls_same_bytes),
		cmocka_unit_test(test_failed_encode_leaves_the_buffer_as_it_was),
		cmocka_unit_test(test_gzip_holds_the_plain_message),
		cmocka_unit_test(test_encoding_appends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
