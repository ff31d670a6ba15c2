/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of many profiles: their order, and functions that are known already. */
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "pprof/pprof.h"
#include "proto/profile.pb-c.h"

DEFINE_AUTO(pprof);
#define autopprof autocall(auto_pprof_destroy) struct pprof

static void free_message(Perftools__Profiles__Profile **message)
{
	perftools__profiles__profile__free_unpacked(*message, NULL);
}
#define automessage autocall(free_message) Perftools__Profiles__Profile

static struct pprof *new_pprof(void)
{
	const struct pprof_options options = { .types = { { "samples", "count" } },
		.type_count = 1 };
	struct pprof *p;

	assert_int_equal(pprof_create(&options, &p), 0);
	return p;
}

static Perftools__Profiles__Profile *decode(struct pprof *p)
{
	Perftools__Profiles__Profile *message;
	autocall(buffer_deinit) struct buffer out;

	buffer_init(&out, 1 << 20);
	assert_int_equal(pprof_encode(p, false, &out), 0);
	message = perftools__profiles__profile__unpack(NULL, out.size, out.bytes);
	assert_non_null(message);
	return message;
}

static void add_location(struct pprof *p, uint64_t address, const struct pprof_line *line)
{
	uint64_t id;

	assert_int_equal(pprof_location(p, 0, address, line, line ? 1 : 0, &id), 0);
}

static void add_sample(struct pprof *p, const uint64_t stack[2], int64_t count)
{
	assert_int_equal(pprof_sample(p, stack, 2, &count, NULL, 0), 0);
}

/* Root first; what is added afterwards brings back the order in which samples came. */
static void samples_in_the_order_of_their_stacks(void **state)
{
	static const uint64_t stacks[][2] = { { 1, 2 }, { 1, 1 }, { 3, 2 }, { 2, 1 }, { 3, 3 } };
	static const int64_t in_order[] = { 2, 4, 1, 3 };
	autopprof *p = new_pprof();

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		add_location(p, 0x1000 + i, NULL);
	for (int64_t i = 0; i < 4; i++)
		add_sample(p, stacks[i], i + 1);
	assert_int_equal(pprof_sort(p), 0);
	automessage *sorted = decode(p);
	assert_int_equal(sorted->n_sample, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(sorted->sample[i]->value[0], in_order[i]);
	add_sample(p, stacks[4], 5);
	automessage *message = decode(p);
	assert_int_equal(message->n_sample, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(message->sample[i]->value[0], i + 1);
}

/* By file, then by address; samples say the same stacks as before. */
static void locations_in_the_order_of_files_and_addresses(void **state)
{
	static const struct pprof_mapping mappings[] = { { .start = 0x1000, .file = "/b" },
		{ .start = 0x2000, .file = "/a" } };
	static const uint64_t addresses[] = { 0x1200, 0x2100, 0x1100, 0x2300 };
	static const uint64_t in_order[] = { 0x2100, 0x2300, 0x1100, 0x1200 };
	autopprof *p = new_pprof();
	uint64_t mapping, ids[4];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(pprof_mapping(p, &mappings[i % 2], &mapping), 0);
		assert_int_equal(pprof_location(p, mapping, addresses[i], NULL, 0, &ids[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		add_sample(p, (uint64_t[]){ ids[i], ids[3 - i] }, (int64_t)i + 1);
	assert_int_equal(pprof_sort(p), 0);
	automessage *message = decode(p);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(message->location[i]->id, i + 1);
		assert_int_equal(message->location[i]->address, in_order[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		const Perftools__Profiles__Sample *sample = message->sample[i];
		const size_t number = (size_t)sample->value[0] - 1;

		assert_int_equal(
			message->location[sample->location_id[0] - 1]->address, addresses[number]);
		assert_int_equal(message->location[sample->location_id[1] - 1]->address,
			addresses[3 - number]);
	}
}

/* Those without a location are the last; what is added afterwards brings back the order of adding.
 */
static void functions_in_the_order_of_their_locations(void **state)
{
	static const struct pprof_line lines[] = { { .name = "unused" }, { .name = "second" },
		{ .name = "first" } };
	static const char *const in_order[] = { "first", "second", "unused" };
	autopprof *p = new_pprof();
	uint32_t id;

	(void)state;
	assert_int_equal(pprof_function(p, &lines[0], &id), 0);
	add_location(p, 0x1300, &lines[1]);
	add_location(p, 0x1200, &lines[2]);
	add_location(p, 0x1100, &lines[2]);
	assert_int_equal(pprof_sort(p), 0);
	automessage *message = decode(p);
	assert_int_equal(message->n_function, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(message->function[i]->id, i + 1);
		assert_string_equal(message->string_table[message->function[i]->name], in_order[i]);
		assert_int_equal(message->location[i]->line[0]->function_id, 1 + i / 2);
	}
	assert_int_equal(pprof_function(p, &(struct pprof_line){ .name = "new" }, &id), 0);
	automessage *as_added = decode(p);
	assert_int_equal(as_added->n_function, 4);
	assert_string_equal(as_added->string_table[as_added->function[0]->name], "unused");
	assert_int_equal(as_added->location[0]->line[0]->function_id, 2);
}

static void a_function_is_added_once_for_many_lines(void **state)
{
	static const struct pprof_line first = { .name = "main", .system_name = "main", .line = 3 };
	struct pprof_line line = { .line = 7 };
	autopprof *p = new_pprof();
	uint64_t id;

	(void)state;
	assert_int_equal(pprof_function(p, &first, &line.function), 0);
	add_location(p, 0x1000, &first);
	add_location(p, 0x1001, &line);
	automessage *message = decode(p);
	assert_int_equal(message->n_function, 1);
	assert_int_equal(message->location[1]->line[0]->function_id, 1);
	assert_int_equal(message->location[1]->line[0]->line, 7);
	line.function = 2;
	assert_int_equal(pprof_location(p, 0, 0x1002, &line, 1, &id), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_in_the_order_of_their_stacks),
		cmocka_unit_test(locations_in_the_order_of_files_and_addresses),
		cmocka_unit_test(functions_in_the_order_of_their_locations),
		cmocka_unit_test(a_function_is_added_once_for_many_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
