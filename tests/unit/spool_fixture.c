/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/remove_tree.h"
#include "tests/unit/spool_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"

void spool_fixture_init(struct spool_fixture *f)
{
	*f = (struct spool_fixture){ .directory = "/tmp/fathom-spool-XXXXXX" };
	assert_non_null(mkdtemp(f->directory));
}

void spool_fixture_deinit(struct spool_fixture *f)
{
	remove_tree(f->directory);
}

static uint8_t byte_of(uint64_t number, size_t at)
{
	return (uint8_t)(number * 31 + at * 7 + at / 256);
}

void spool_fixture_payload(uint64_t number, size_t size, struct payload *ret_payload)
{
	struct payload p = { .raw_bytes = 3 * size, .samples = number % 100 };
	char text[32];
	uint8_t *room;

	snprintf(text, sizeof(text), "%" PRIu64, number);
	assert_int_equal(labels_set(&p.labels, "__name__", "process_cpu"), 0);
	assert_int_equal(labels_set(&p.labels, "number", text), 0);
	buffer_init(&p.pprof, SIZE_MAX);
	room = buffer_room(&p.pprof, size);
	for (size_t i = 0; i < size; i++)
		room[i] = byte_of(number, i);
	p.pprof.size = size;
	p.time_ns = (int64_t)clock_real_ns();
	p.duration_ns = (int64_t)(1000 + number);
	*ret_payload = p;
}

uint64_t spool_fixture_check(const struct payload *payload)
{
	const char *text = labels_get(&payload->labels, "number");
	uint64_t number;

	assert_non_null(text);
	assert_string_equal(labels_get(&payload->labels, "__name__"), "process_cpu");
	assert_int_equal(payload->labels.count, 2);
	number = strtoull(text, NULL, 10);
	assert_int_equal(payload->duration_ns, 1000 + number);
	assert_int_equal(payload->raw_bytes, 3 * payload->pprof.size);
	assert_int_equal(payload->samples, number % 100);
	for (size_t i = 0; i < payload->pprof.size; i++) {
		if (payload->pprof.bytes[i] != byte_of(number, i))
			fail_msg("payload %" PRIu64 " has a wrong byte at %zu", number, i);
	}
	return number;
}

struct spool_options spool_fixture_options(
	struct spool_fixture *f, uint64_t limit_bytes, const char *const *targets)
{
	struct spool_options options = {
		.directory = f->directory,
		.limit_bytes = limit_bytes,
		.targets = targets,
		.metrics = &f->metrics,
	};

	while (targets[options.target_count])
		options.target_count++;
	return options;
}

static int only_segments(const struct dirent *e)
{
	const char *dot = strrchr(e->d_name, '.');

	return dot && !strcmp(dot, ".seg");
}

bool spool_fixture_segment(const struct spool_fixture *f, size_t n, char path[128])
{
	struct dirent **list;
	int count = scandir(f->directory, &list, only_segments, alphasort);
	bool found = count > 0 && n < (size_t)count;

	if (found)
		snprintf(path, 128, "%s/%.40s", f->directory, list[n]->d_name);
	for (int i = 0; i < count; i++)
		free(list[i]);
	if (count >= 0)
		free(list);
	return found;
}

struct spool *spool_fixture_open(
	struct spool_fixture *f, uint64_t limit, const char *const *targets)
{
	struct spool_options options = spool_fixture_options(f, limit, targets);
	struct spool *s = NULL;

	assert_int_equal(spool_create(&options, &s), 0);
	return s;
}

int spool_fixture_put(struct spool *s, uint64_t number, size_t size)
{
	struct payload p;
	int err;

	spool_fixture_payload(number, size, &p);
	err = spool_put(s, &p);
	payload_deinit(&p);
	return err;
}

uint64_t spool_fixture_peek(struct spool *s, size_t target)
{
	struct payload p = { 0 };
	uint64_t number;
	int err = spool_peek(s, target, &p);

	if (err == -ENOENT)
		return 0;
	assert_int_equal(err, 0);
	number = spool_fixture_check(&p);
	payload_deinit(&p);
	return number;
}

uint64_t spool_fixture_take(struct spool *s, size_t target)
{
	uint64_t number = spool_fixture_peek(s, target);

	if (number) {
		assert_false(spool_begin(s, target));
		assert_int_equal(spool_advance(s, target), 0);
	}
	return number;
}

unsigned int spool_fixture_seed(void)
{
	const char *text = getenv("FATHOM_TEST_SEED");
	unsigned int seed = text ? (unsigned int)strtoul(text, NULL, 10) : 1;

	print_message("FATHOM_TEST_SEED=%u\n", seed);
	return seed;
}
