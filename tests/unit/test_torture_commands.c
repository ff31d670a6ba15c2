/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the commands while each allocation and system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/held_command.h"
#include "agent/commands/profile_names.h"
#include "agent/commands/record.h"
#include "agent/commands/upload.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"

/* ---- record ------------------------------------------------------------------------------------
 */

static int spawn(void *context)
{
	char *argv[] = { (char *)"true", NULL };

	return held_command_spawn(argv, context);
}

static void end_command(void *context, int result)
{
	if (!result)
		held_command_deinit(context);
}

static void a_command_that_cannot_be_spawned(void **state)
{
	struct held_command command;
	struct torture t = { .operation = spawn, .end = end_command, .context = &command };

	(void)state;
	torture_run(&t);
}

struct targets {
	struct loop *loop;
	struct watched_targets targets;
	uint32_t pids[2];
};

static void on_ended(void *context)
{
	(void)context;
}

static int watch(void *context)
{
	struct targets *t = context;
	const struct collect_options who = { .tgids = t->pids, .tgid_count = 2 };

	return watched_targets_watch(&t->targets, &who, t->loop, on_ended, t);
}

/* If watching fails, no target is watched and the run does not end early. */
static void end_targets(void *context, int result)
{
	struct targets *t = context;

	assert_int_equal(t->targets.count, result || torture_failed() ? 0 : 2);
	assert_false(watched_targets_ended(&t->targets));
	watched_targets_deinit(&t->targets);
}

static void targets_that_cannot_be_watched(void **state)
{
	struct targets targets = { .pids = { (uint32_t)getpid(), (uint32_t)getpid() } };
	struct torture t = {
		.operation = watch, .end = end_targets, .context = &targets, .optional = "epoll_ctl"
	};

	(void)state;
	assert_int_equal(loop_create(&targets.loop), 0);
	torture_run(&t);
	loop_destroy(targets.loop);
}

static struct config config;

static int plan(void *context)
{
	return record_plan(&config, context);
}

static void end_plan(void *context, int result)
{
	if (!result)
		record_plan_deinit(context);
}

static void a_plan_without_memory(void **state)
{
	char pids[32];
	char *argv[] = { (char *)"record", (char *)"-p", pids, (char *)"-t", pids, (char *)"-C0",
		NULL };
	struct record_plan made;
	/* Without /proc/self/status our pid namespace is taken for one below the first. */
	struct torture t = { .operation = plan,
		.end = end_plan,
		.context = &made,
		.optional = "fopen stat",
		.other_errors = true };

	(void)state;
	snprintf(pids, sizeof(pids), "%d", getpid());
	assert_int_equal(config_parse(&config, IN_RECORD, 6, argv), 0);
	torture_run(&t);
	config_deinit(&config);
}

/* ---- foreign profiles --------------------------------------------------------------------------
 */

static char path[] = "/tmp/fathom-test-XXXXXX";

static int write_profile(void **state)
{
	const struct pprof_options options = { .types = { { "samples", "count" } },
		.type_count = 1,
		.default_type = "samples",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1,
		.limit_bytes = 1 << 20 };
	const struct pprof_label label = { .key = "comm", .text = "shop" };
	const struct pprof_line line = { .name = "f", .system_name = "f", .file = "f.c" };
	const int64_t value = 5;
	struct buffer out;
	struct pprof *p;
	int err = pprof_create(&options, &p);

	(void)state;
	for (uint64_t i = 1; i < 20 && !err; i++) {
		const struct pprof_mapping mapping = { i << 12, (i + 1) << 12, 0, "/bin/x", "ab" };
		uint64_t location, number = 0;

		err = pprof_mapping(p, &mapping, &number);
		if (!err)
			err = pprof_location(p, number, i << 12, &line, i % 2, &location);
		if (!err)
			err = pprof_sample(p, &location, 1, &value, &label, i % 3 > 0);
	}
	buffer_init(&out, 1 << 20);
	close(mkstemp(path));
	if (!err)
		err = pprof_encode(p, true, &out);
	if (!err)
		err = io_replace_file(AT_FDCWD, path, out.bytes, out.size, 0600);
	buffer_deinit(&out);
	pprof_destroy(p);
	return err;
}

static int remove_profile(void **state)
{
	(void)state;
	return unlink(path);
}

static int read_profile(void *context)
{
	const char *why = "";

	return pprof_read_file(path, context, &why);
}

static void end_profile(void *context, int result)
{
	if (result)
		assert_null(((struct pprof_read *)context)->message);
	pprof_read_deinit(context);
}

static void reading_a_profile(void **state)
{
	struct pprof_read profile = { 0 };
	/* Without memory the decoder says no more than that it failed. */
	struct torture t = { .operation = read_profile,
		.end = end_profile,
		.context = &profile,
		.other_errors = true };

	(void)state;
	torture_run(&t);
}

static int count_payload(void *context, const struct payload *payload)
{
	*(uint64_t *)context += payload->samples;
	return 0;
}

struct splitting {
	struct pprof_read profile;
	uint64_t samples;
};

static int split(void *context)
{
	struct splitting *s = context;
	const struct labels external = { 0 };
	const struct upload_series series = {
		.external = &external, .service = "file", .time_ns = 1, .sample_labels = true
	};

	s->samples = 0;
	return upload_payloads(&s->profile, &series, count_payload, &s->samples);
}

static void all_samples_went_out(void *context, int result)
{
	struct splitting *s = context;

	if (!result)
		assert_int_equal(s->samples, 19);
}

static void making_payloads(void **state)
{
	struct splitting s = { 0 };
	struct torture t = { .operation = split, .end = all_samples_went_out, .context = &s };

	(void)state;
	assert_int_equal(read_profile(&s.profile), 0);
	torture_run(&t);
	pprof_read_deinit(&s.profile);
}

static size_t look_up(
	void *context, size_t mapping, uint64_t address, struct index_frame *ret_frames, size_t max)
{
	(void)context;
	(void)mapping;
	(void)address;
	assert_true(max > 1);
	ret_frames[0] =
		(struct index_frame){ .name = "in", .linkage = "in", .file = "in.c", .line = 3 };
	ret_frames[1] = (struct index_frame){ .name = "out", .linkage = "out", .file = "" };
	return 2;
}

static void begin_names(void *context)
{
	assert_int_equal(read_profile(context), 0);
}

static int add_names(void *context)
{
	const struct profile_names_options options = { .look_up = look_up };
	struct profile_names_counts counts;

	return profile_names_add(context, &options, &counts);
}

static void end_names(void *context, int result)
{
	(void)result;
	pprof_read_deinit(context);
}

static void adding_names(void **state)
{
	struct pprof_read profile = { 0 };
	struct torture t = {
		.begin = begin_names, .operation = add_names, .end = end_names, .context = &profile
	};

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_command_that_cannot_be_spawned),
		torture_test(targets_that_cannot_be_watched),
		torture_test(a_plan_without_memory),
		torture_test(reading_a_profile),
		torture_test(making_payloads),
		torture_test(adding_names),
	};

	return cmocka_run_group_tests(tests, write_profile, remove_profile);
}
