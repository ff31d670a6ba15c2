/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays recordings of the sampler's host: the profiles must equal those of the recorded runs,
 * byte for byte, also without the packing of waiting stacks. Each recording is a case. Arguments
 * name recordings to use instead of the project's. With REPLAY_OUTPUT=DIRECTORY, profiles that
 * differ are written there.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/collect/mechanisms.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "tests/replay/replay.h"

enum { MAX_RECORDINGS = 64, MAX_RECORDING_BYTES = 1 << 29 };

struct comparison {
	const char *path;
	unsigned int reports, different;
};

static void write_profile(
	const struct comparison *c, const char *which, const void *bytes, size_t size)
{
	const char *directory = getenv("REPLAY_OUTPUT"), *slash = strrchr(c->path, '/');
	char path[512];

	if (!directory)
		return;
	snprintf(path, sizeof(path), "%s/%s-%u.%s.pb", directory, slash ? slash + 1 : c->path,
		c->reports, which);
	(void)io_replace_file(AT_FDCWD, path, bytes, size, 0644);
}

static void compare(void *context, const struct replay_report *report)
{
	struct comparison *c = context;
	size_t same = 0;

	c->reports++;
	while (same < report->expected_bytes && same < report->got_bytes &&
		report->expected[same] == report->got[same])
		same++;
	if (same == report->expected_bytes && same == report->got_bytes)
		return;
	c->different++;
	print_message("%s: profile %u differs from byte %zu of %zu on (has %zu)\n", c->path,
		c->reports, same, report->expected_bytes, report->got_bytes);
	write_profile(c, "expected", report->expected, report->expected_bytes);
	write_profile(c, "got", report->got, report->got_bytes);
}

static int load(const char *path, struct recording *ret_recording)
{
	autocall(buffer_deinit) struct buffer bytes;
	int err;

	buffer_init(&bytes, MAX_RECORDING_BYTES);
	err = io_read_file(AT_FDCWD, path, &bytes);
	return err ? err : recording_parse(bytes.bytes, bytes.size, ret_recording);
}

static void replay_without(const char *path, const struct recording *recording, uint32_t without)
{
	struct comparison comparison = { .path = path };
	struct replay_result result = { 0 };
	int err = replay_run(recording, without, compare, &comparison, &result);

	print_message("# %s: %llu samples, %u profiles, %llu questions without an answer%s%s\n",
		comparison.path, (unsigned long long)result.samples, result.reports,
		(unsigned long long)result.unanswered, result.unanswered ? ", first " : "",
		result.first_unanswered);
	if (err == -EPROTO)
		print_message("%s: its indexes have another format: tests/replay/README.md\n",
			comparison.path);
	free(result.used);
	assert_int_equal(err, 0);
	assert_int_equal(comparison.different, 0);
	assert_true(result.reports > 0);
	assert_true(result.samples > 0);
}

static void profiles_are_those_of_the_recorded_run(void **state)
{
	autocall(recording_deinit) struct recording recording = { 0 };

	assert_int_equal(load(*state, &recording), 0);
	replay_without(*state, &recording, 0);
	replay_without(*state, &recording, MECHANISM_PACKED_STACKS | MECHANISM_PACKED_RULES);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[MAX_RECORDINGS] = { 0 };
	size_t count = 0;
	char **paths;
	glob_t found;
	int failed;

	log_configure(LOG_ERROR, false);
	if (glob("tests/replay/recordings/*.zst", 0, NULL, &found)) {
		fputs("there are no recordings\n", stderr);
		return 1;
	}
	paths = argc > 1 ? argv + 1 : found.gl_pathv;
	for (; count < MAX_RECORDINGS && paths[count]; count++)
		tests[count] = (struct CMUnitTest){
			.name = paths[count],
			.test_func = profiles_are_those_of_the_recorded_run,
			.initial_state = paths[count],
		};
	failed = _cmocka_run_group_tests("replay", tests, count, NULL, NULL);
	globfree(&found);
	return failed;
}
