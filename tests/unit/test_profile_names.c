/* SPDX-License-Identifier: Apache-2.0 */
/* Adding the missing names to a foreign profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/profile_names.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum { KNOWN = 0x1010, INLINED = 0x1020, UNKNOWN = 0x1030, NAMED = 0x1040 };
/* The mapping whose locations have no name. */
enum { UNNAMED = 1 };

DEFINE_AUTO(pprof);

/* Four locations of one mapping; the last has a name. */
static void read_profile(struct pprof_read *ret_profile)
{
	static const uint64_t addresses[] = { KNOWN, INLINED, UNKNOWN, NAMED };
	const struct pprof_line line = {
		.name = "mine", .system_name = "mine", .file = "mine.c", .line = 7
	};
	autocall(auto_pprof_destroy) struct pprof *pprof = NULL;
	autocall(buffer_deinit) struct buffer bytes;
	char path[] = "/tmp/fathom-test-XXXXXX";
	uint64_t mapping, locations[4];
	const int64_t one = 1;
	const char *why;

	buffer_init(&bytes, 1 << 20);
	assert_int_equal(
		pprof_create(&(struct pprof_options){ .types = { { "cpu", "nanoseconds" } },
				     .type_count = 1,
				     .default_type = "cpu",
				     .period_type = { "cpu", "nanoseconds" },
				     .period = 1 },
			&pprof),
		0);
	assert_int_equal(pprof_mapping(pprof,
				 &(struct pprof_mapping){ .start = 0x1000,
					 .limit = 0x2000,
					 .file = "/bin/x",
					 .build_id = "abcd" },
				 &mapping),
		0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pprof_location(pprof, mapping, addresses[i], &line,
					 addresses[i] == NAMED, &locations[i]),
			0);
	assert_int_equal(pprof_sample(pprof, locations, 4, &one, NULL, 0), 0);
	assert_int_equal(pprof_encode(pprof, true, &bytes), 0);
	close(mkstemp(path));
	assert_int_equal(io_replace_file(AT_FDCWD, path, bytes.bytes, bytes.size, 0600), 0);
	assert_int_equal(pprof_read_file(path, ret_profile, &why), 0);
	unlink(path);
}

struct asked {
	unsigned int count;
	bool all; /* UNKNOWN is known too */
};

static size_t look_up(
	void *context, size_t mapping, uint64_t address, struct index_frame *ret_frames, size_t max)
{
	static const struct index_frame inner = { "inner(int)", "_Z5inneri", "in.c", 3, 4, 2 },
					outer = { "outer\xff", "outer", "out.c", 30, 5, 20 };
	struct asked *asked = context;

	assert_true(mapping < 2);
	assert_true(max >= 2);
	assert_int_not_equal(address, NAMED);
	asked->count++;
	if (address == INLINED) {
		ret_frames[0] = inner;
		ret_frames[1] = outer;
		return 2;
	}
	ret_frames[0] = outer;
	return address == KNOWN || asked->all;
}

static const MESSAGE(Location) * location_at(const struct pprof_read *p, uint64_t address)
{
	for (size_t i = 0; i < p->message->n_location; i++)
		if (p->message->location[i]->address == address)
			return p->message->location[i];
	fail();
	return NULL;
}

static void assert_line(const struct pprof_read *p, const MESSAGE(Line) * line,
	const char *const *names, int64_t number)
{
	const MESSAGE(Function) * function;
	uint64_t index;

	assert_true(pprof_ids_get(&p->functions, line->function_id, &index));
	function = p->message->function[index];
	assert_string_equal(pprof_read_text(p, function->name), names[0]);
	assert_string_equal(pprof_read_text(p, function->system_name), names[1]);
	assert_string_equal(pprof_read_text(p, function->filename), names[2]);
	assert_int_equal(line->line, number);
}

static const char *const inner_names[] = { "inner(int)", "_Z5inneri", "in.c" };
static const char *const outer_names[] = { "outer?", "outer", "out.c" };
static const char *const mine_names[] = { "mine", "mine", "mine.c" };

static void what_has_no_name_gets_its_chain(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	struct asked asked = { 0 };
	const struct profile_names_options options = { .look_up = look_up, .context = &asked };
	struct profile_names_counts counts;
	const MESSAGE(Location) * location;

	(void)state;
	read_profile(&p);
	assert_int_equal(profile_names_add(&p, &options, &counts), 0);
	assert_int_equal(asked.count, 3);
	assert_int_equal(counts.nameless, 3);
	assert_int_equal(counts.named, 2);
	location = location_at(&p, INLINED);
	assert_int_equal(location->n_line, 2);
	assert_line(&p, location->line[0], inner_names, 3);
	assert_line(&p, location->line[1], outer_names, 30);
	assert_int_equal(location->line[1]->column, 5);
	location = location_at(&p, KNOWN);
	assert_int_equal(location->n_line, 1);
	assert_line(&p, location->line[0], outer_names, 30);
	/* Several locations share one function; `mine` was there before. */
	assert_int_equal(
		location->line[0]->function_id, location_at(&p, INLINED)->line[1]->function_id);
	assert_int_equal(p.message->n_function, 3);
	assert_int_equal(location_at(&p, UNKNOWN)->n_line, 0);
	/* One location still has no name, so the mapping does not set the flag. */
	assert_false(p.message->mapping[UNNAMED]->has_functions);
}

static void what_has_a_name_keeps_it(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	struct asked asked = { 0 };
	const struct profile_names_options options = { .look_up = look_up, .context = &asked };
	struct profile_names_counts counts;

	(void)state;
	read_profile(&p);
	assert_int_equal(profile_names_add(&p, &options, &counts), 0);
	assert_int_equal(location_at(&p, NAMED)->n_line, 1);
	assert_line(&p, location_at(&p, NAMED)->line[0], mine_names, 7);
}

static void a_mapping_claims_what_holds_for_all_of_it(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	struct asked asked = { .all = true };
	const struct profile_names_options options = { .look_up = look_up, .context = &asked };
	struct profile_names_counts counts;

	(void)state;
	read_profile(&p);
	assert_int_equal(profile_names_add(&p, &options, &counts), 0);
	assert_int_equal(counts.named, 3);
	assert_true(p.message->mapping[UNNAMED]->has_functions);
	assert_true(p.message->mapping[UNNAMED]->has_filenames);
	assert_true(p.message->mapping[UNNAMED]->has_line_numbers);
	assert_true(p.message->mapping[UNNAMED]->has_inline_frames);
}

static void without_inlined_calls_the_outermost_stays(void **state)
{
	static const char *const linkage[] = { "outer", "outer", "in.c" };
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	struct asked asked = { .all = true };
	const struct profile_names_options options = {
		.look_up = look_up, .context = &asked, .no_inlines = true, .linkage_names = true
	};
	struct profile_names_counts counts;

	(void)state;
	read_profile(&p);
	assert_int_equal(profile_names_add(&p, &options, &counts), 0);
	assert_int_equal(location_at(&p, INLINED)->n_line, 1);
	assert_line(&p, location_at(&p, INLINED)->line[0], linkage, 3);
	assert_false(p.message->mapping[UNNAMED]->has_inline_frames);
}

/* A line whose function has no name is replaced. */
static void lines_of_nameless_functions_are_replaced(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	struct asked asked = { 0 };
	const struct profile_names_options options = { .look_up = look_up, .context = &asked };
	struct profile_names_counts counts;
	uint64_t index;

	(void)state;
	read_profile(&p);
	assert_true(
		pprof_ids_get(&p.functions, location_at(&p, NAMED)->line[0]->function_id, &index));
	p.message->function[index]->name = 0;
	p.message->function[index]->system_name = 0;
	p.message->location[3]->address = KNOWN + 0x100;
	asked.all = true;
	assert_int_equal(profile_names_add(&p, &options, &counts), 0);
	assert_int_equal(counts.nameless, 4);
	assert_line(&p, location_at(&p, KNOWN + 0x100)->line[0], outer_names, 30);
}

/* The profile may use any ids. */
static void new_functions_take_ids_that_are_free(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read p = { 0 };
	struct asked asked = { 0 };
	const struct profile_names_options options = { .look_up = look_up, .context = &asked };
	struct profile_names_counts counts;

	(void)state;
	read_profile(&p);
	p.functions.counted = 0;
	p.message->function[0]->id = 2;
	p.message->location[3]->line[0]->function_id = 2;
	assert_int_equal(map_set(&p.functions.others, 2, 0), 0);
	assert_int_equal(profile_names_add(&p, &options, &counts), 0);
	assert_int_equal(p.message->n_function, 3);
	for (size_t i = 0; i < 3; i++)
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(
				p.message->function[i]->id, p.message->function[k]->id);
	assert_line(&p, location_at(&p, NAMED)->line[0], mine_names, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_name_gets_its_chain),
		cmocka_unit_test(what_has_a_name_keeps_it),
		cmocka_unit_test(a_mapping_claims_what_holds_for_all_of_it),
		cmocka_unit_test(without_inlined_calls_the_outermost_stays),
		cmocka_unit_test(lines_of_nameless_functions_are_replaced),
		cmocka_unit_test(new_functions_take_ids_that_are_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
