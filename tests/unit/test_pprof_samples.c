/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are read without unpacking their samples are what the generated code reads. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"
#include "pprof/pprof_read.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum { STACKS = 40, LIMIT = 1 << 20 };

static struct buffer plain;

static uint64_t location_of(struct pprof *p, int number)
{
	const struct pprof_mapping mapping = { 0x1000, 0x900000, 0, "/bin/program", "c0ffee" };
	const struct pprof_line line = {
		.name = number % 2 ? "odd" : "even", .file = "p.c", .line = number * 100
	};
	uint64_t id;

	assert_int_equal(pprof_mapping(p, &mapping, &id), 0);
	assert_int_equal(
		pprof_location(p, id, 0x2000 + 300 * (uint64_t)number, &line, number % 3 != 0, &id),
		0);
	return id;
}

/* Each stack three times, with other labels: the second time with those of the first. */
static void add_samples(struct pprof *p)
{
	for (int i = 0; i < STACKS * 3; i++) {
		const int64_t values[] = { 1, 1000000 * (int64_t)i };
		const struct pprof_label labels[] = { { .key = "comm", .text = "c" },
			{ .key = "minute", .number = i % 3, .unit = "id" },
			{ .key = "debt", .number = -i } };
		uint64_t stack[STACKS];
		size_t depth = (size_t)(i / 3);

		for (size_t k = 0; k < depth; k++)
			stack[k] = location_of(p, (int)k + i / 3);
		assert_int_equal(
			pprof_sample(p, stack, depth, values, labels, i % 3 == 2 ? 3 : 2), 0);
	}
}

static int setup(void **state)
{
	const struct pprof_options options = { .types = { { "samples", "count" },
						       { "cpu", "nanoseconds" } },
		.type_count = 2,
		.period_type = { "cpu", "nanoseconds" },
		.period = 7,
		.time_ns = 8,
		.duration_ns = 9,
		.default_type = "cpu",
		.drop_frames = "drop",
		.keep_frames = "keep",
		.doc_url = "url" };
	struct pprof *p;

	(void)state;
	buffer_init(&plain, LIMIT);
	assert_int_equal(pprof_create(&options, &p), 0);
	add_samples(p);
	assert_int_equal(pprof_comment(p, "a comment"), 0);
	assert_int_equal(pprof_encode(p, false, &plain), 0);
	pprof_destroy(p);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buffer_deinit(&plain);
	return 0;
}

/* ---- reading it both ways ------------------------------------------------------------------- */

struct both {
	struct pprof_read tree, encoded;
	int tree_error, encoded_error;
};

static struct both read_both(const void *bytes, size_t size)
{
	struct both both = { 0 };
	const char *why;
	char path[32];
	int fd = memfd_create("profile", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, bytes, size), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	both.tree_error = pprof_read_file(path, &both.tree, &why);
	both.encoded_error = pprof_read_at(AT_FDCWD, path, &both.encoded, &why);
	close(fd);
	return both;
}

static void both_deinit(struct both *both)
{
	pprof_read_deinit(&both->tree);
	pprof_read_deinit(&both->encoded);
}

static void assert_same_sample(
	const struct both *both, const MESSAGE(Sample) * tree, const struct pprof_sample_row *row)
{
	const struct pprof_samples *s = &both->encoded.samples;
	const struct pprof_sample_part stack = s->stacks[row->stack], set = s->sets[row->labels];
	const int64_t *values = pprof_samples_values(s, (size_t)(row - s->rows));

	assert_int_equal(tree->n_location_id, stack.count);
	assert_int_equal(tree->n_value, s->value_count);
	assert_int_equal(tree->n_label, set.count);
	for (size_t i = 0; i < stack.count; i++)
		assert_int_equal(tree->location_id[i],
			both->encoded.message->location[s->locations[stack.first + i]]->id);
	for (size_t i = 0; i < s->value_count; i++)
		assert_int_equal(tree->value[i], values[i]);
	for (size_t i = 0; i < set.count; i++) {
		const struct pprof_sample_label *label = &s->labels[set.first + i];

		assert_int_equal(tree->label[i]->key, label->key);
		assert_int_equal(tree->label[i]->str, label->str);
		assert_int_equal(tree->label[i]->num, label->num);
		assert_int_equal(tree->label[i]->num_unit, label->num_unit);
	}
}

/* Returns how many samples shared the stack of the one before. */
static size_t assert_same_samples(const struct both *both)
{
	const MESSAGE(Profile) *tree = both->tree.message;
	const struct pprof_samples *s = &both->encoded.samples;

	assert_int_equal(tree->n_sample, s->count);
	for (size_t i = 0; i < s->count; i++)
		assert_same_sample(both, tree->sample[i], &s->rows[i]);
	return s->count - s->stack_count;
}

/* Packs MESSAGE without its samples, and without what only the generated code keeps. */
static size_t packed(const MESSAGE(Profile) * message, uint8_t *bytes)
{
	MESSAGE(Profile) rest = *message;

	rest.n_sample = 0;
	rest.base.n_unknown_fields = 0;
	assert_true(perftools__profiles__profile__get_packed_size(&rest) <= LIMIT);
	return perftools__profiles__profile__pack(&rest, bytes);
}

static size_t assert_same(const struct both *both)
{
	autofree uint8_t *tree = malloc(LIMIT), *encoded = malloc(LIMIT);
	size_t size;

	assert_int_equal(both->tree_error, 0);
	assert_int_equal(both->encoded_error, 0);
	size = packed(both->tree.message, tree);
	assert_int_equal(packed(both->encoded.message, encoded), size);
	assert_memory_equal(tree, encoded, size);
	return assert_same_samples(both);
}

static void test_reads_what_the_generated_code_reads(void **state)
{
	struct both both = read_both(plain.bytes, plain.size);

	(void)state;
	assert_int_equal(assert_same(&both), 2 * STACKS);
	assert_int_equal(both.encoded.samples.most_locations, STACKS - 1);
	assert_int_equal(both.encoded.samples.most_labels, 3);
	both_deinit(&both);
}

static void test_reads_other_encodings(void **state)
{
	static const uint8_t parts[] = {
		0x0a, 4, 0x08, 1, 0x10, 2, /* a sample type */
		0x12, 9, 0x08, 1, 0x08, 2, 0x10, 5, 0x3a, 1, 'x', /* two IDs, not packed; unknown */
		0x12, 9, 0x0a, 1, 1, 0x0a, 1, 2, 0x12, 1, 6, /* the same, in two fields */
		0x12, 6, 0x0a, 2, 1, 2, 0x10, 7, /* in one */
		0x12, 6, 0x0a, 2, 1, 2, 0x10, 8, /* again */
		0x12, 2, 0x10, 9, /* none */
		0x12, 9, 0x0a, 2, 1, 2, 0x0a, 1, 1, 0x10, 7, /* three */
		0x22, 2, 0x08, 1, 0x22, 2, 0x08, 2, /* locations */
		0x32, 0, 0x32, 1, 'a', 0x32, 1, 'b', /* strings */
		0x5a, 4, 0x08, 1, 0x10, 2, /* the period's type */
		0xa0, 0x06, 5, 0xa2, 0x06, 1, 'y', 0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8, /* unknown */
		0x6a, 2, 1, 2, 0x68, 1, /* comments, packed and not */
	};
	struct both both = read_both(parts, sizeof(parts));

	(void)state;
	assert_int_equal(assert_same(&both), 1);
	assert_int_equal(both.encoded.message->n_comment, 3);
	assert_int_equal(both.encoded.message->period_type->unit, 2);
	both_deinit(&both);
}

static void test_refuses_what_is_cut_off(void **state)
{
	(void)state;
	for (size_t size = 1; size < plain.size; size += size < 600 ? 1 : 97) {
		struct both both = read_both(plain.bytes, size);

		assert_int_equal(both.tree_error, -EBADMSG);
		assert_int_equal(both.encoded_error, -EBADMSG);
		both_deinit(&both);
	}
}

/* No byte may lead anywhere: ASan and UBSan watch. */
static void test_takes_any_byte(void **state)
{
	autofree uint8_t *bytes = malloc(plain.size);

	(void)state;
	for (size_t i = 0; i < plain.size; i += i < 600 ? 1 : 53) {
		struct both both;

		memcpy(bytes, plain.bytes, plain.size);
		bytes[i] ^= 0x80 >> i % 8;
		both = read_both(bytes, plain.size);
		if (!both.tree_error && !both.encoded_error)
			assert_same_samples(&both);
		both_deinit(&both);
	}
}

static void test_refuses_wrong_references(void **state)
{
	static const uint8_t head[] = { 0x0a, 2, 0x08, 1, 0x22, 2, 0x08, 1, 0x32, 0, 0x32, 1, 'a' };
	static const uint8_t wrong[][10] = {
		{ 0x12, 5, 0x0a, 1, 2, 0x10, 1 }, /* a location that is not there */
		{ 0x12, 5, 0x0a, 1, 1, 0x12, 0 }, /* no value */
		{ 0x12, 6, 0x10, 1, 0x1a, 2, 0x08, 9 }, /* a label's key */
		{ 0x12, 6, 0x10, 1, 0x1a, 2, 0x10, 9 }, /* its text */
		{ 0x10, 1 }, /* a sample that is a number */
		{ 0x22, 2, 0x08, 1 }, /* the same ID again */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		uint8_t bytes[sizeof(head) + sizeof(wrong[0])];
		size_t size = wrong[i][0] == 0x10 ? 2 : 2 + (size_t)wrong[i][1];
		struct both both;

		memcpy(mempcpy(bytes, head, sizeof(head)), wrong[i], size);
		both = read_both(bytes, sizeof(head) + size);
		assert_int_equal(both.tree_error, -EBADMSG);
		assert_int_equal(both.encoded_error, -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_what_the_generated_code_reads),
		cmocka_unit_test(test_reads_other_encodings),
		cmocka_unit_test(test_refuses_what_is_cut_off),
		cmocka_unit_test(test_takes_any_byte),
		cmocka_unit_test(test_refuses_wrong_references),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
