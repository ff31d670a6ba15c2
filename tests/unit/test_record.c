/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom record` with a fake sampler: what is refused, the order of the steps, and the output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "base/cleanup.h"
#include "tests/unit/command_fixture.h"
#include "tests/unit/command_sampler.h"

static struct command_run run;
static char directory[] = "/tmp/fathom-test-XXXXXX", fifo_path[64];

static int setup(void **state)
{
	int err = report_setup(state);

	fake = (struct sampler){ .world = *state,
		.window = { .types = sample_types_of(false, false), .period = 10101010 } };
	run = (struct command_run){ 0 };
	return err;
}

static void add_samples(struct fixture *f, uint64_t count)
{
	struct profile_frame frame = in_program(START + 5, 0, f);

	add_stack(f, f->one, &(struct profile_stack){ &frame, 1, 0, 0 }, count);
}

static void says(const char *text)
{
	if (!strstr(run.err, text))
		fail_msg("'%s' is not in:\n%s", text, run.err);
}

static void says_not(const char *text)
{
	if (strstr(run.err, text))
		fail_msg("'%s' is in:\n%s", text, run.err);
}

/* Checks that the sampler's functions were called in this order. */
static void calls_are(const char *expected)
{
	char calls[1024] = "";

	for (const char *at = run.err; (at = strchr(at, '[')) != NULL; at++) {
		size_t used = strlen(calls), length = strcspn(at, "]") + 1;

		if (used + length < sizeof(calls) && at[1] >= 'a' && at[1] <= 'z')
			snprintf(calls + used, sizeof(calls) - used, "%.*s", (int)length, at);
	}
	assert_string_equal(calls, expected);
}

static bool file_is_there(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void nonsense_is_bad_usage_and_writes_nothing(void **state)
{
	static const struct {
		const char *words, *message;
	} cases[] = {
		{ "record --", "fathom record: -- must be followed by a command\n" },
		{ "record -a --", "-- must be followed by a command" },
		{ "record sleep", "unexpected argument 'sleep'; a command to run goes after --\n" },
		{ "record -d0", "fathom record: -d must be more than 0 seconds\n" },
		{ "record -e instructions", "-e must be cpu-clock or cycles\n" },
		{ "record -F9 -c100000", "-F and -c exclude each other: a rate, or a count" },
		{ "record -c 99999", "-c must be at least 100000" },
		{ "record -c 9223372036854775808", "-c must be at least 100000" },
		{ "record --off-cpu -C0", "-C and --off-cpu exclude each other" },
		{ "record -F0", "-F must be 1 to 10000" },
		{ "record -UK", "-U and -K exclude each other" },
		{ "record --comm=", "--comm needs a thread name" },
		{ "record --goid=0", "--goid must be a goroutine ID" },
		{ "record -G /no/such", "-G /no/such: no such cgroup" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		command_expect(&run, cases[i].words, EXIT_USAGE, cases[i].message);
		assert_string_equal(run.out, "");
		calls_are("");
	}
}

static void an_impossible_output_is_reported_at_once(void **state)
{
	(void)state;
	command_expect(&run, "record -d1 -o /no/such/file", EXIT_FAILED,
		"fathom record: cannot write /no/such/file: No such file or directory\n");
	calls_are("");
	command_expect(
		&run, "record -d1 -o /tmp", EXIT_FAILED, "cannot write /tmp: Is a directory\n");
	calls_are("");
}

static void processes_that_do_not_exist_fail(void **state)
{
	(void)state;
	command_expect(&run, "record -p 4194305 -d1", EXIT_FAILED, "there is no process 4194305");
	calls_are("");
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void a_run_goes_step_by_step(void **state)
{
	char path[64], words[128];

	add_samples(*state, 3);
	fake.window.ended_ns = 2500000000;
	snprintf(path, sizeof(path), "%s/p", directory);
	snprintf(words, sizeof(words), "record -d 0.001 -o %s", path);
	command_expect(&run, words, EXIT_DONE, "samples:  3 in 2.5 s\n");
	calls_are("[create][prepare 250 ms][start][stop][finish 120000 ms][destroy]");
	assert_string_equal(run.out, "");
	says(" 100.0% 100.0%  _start  /bin/program\n");
	says("lost:     0\n");
	says("wrote ");
	says("; look at it with: fathom view ");
	says(", or go tool pprof -http=: -tagroot=comm ");
	says_not("waits");
	says_not("recording: ");
	assert_true(file_is_there(path));
	unlink(path);
}

static void folded_text_goes_to_standard_output(void **state)
{
	add_samples(*state, 3);
	command_expect(&run, "record -d 0.001 --folded", EXIT_DONE, "samples:  3");
	assert_non_null(strstr(run.out, ";_start 3\n"));
	says_not("wrote");
}

static void a_profile_on_standard_output_is_not_looked_at_by_name(void **state)
{
	add_samples(*state, 3);
	command_expect(&run, "record -d 0.001 -o -", EXIT_DONE, "samples:  3");
	assert_memory_equal(run.out, "\x1f\x8b", 2);
	says_not("wrote");
}

static void waits_are_said_with_the_samples(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(START + 5, 0, f);

	add_samples(f, 1);
	add_wait(f, f->one, &(struct profile_stack){ &frame, 1, 0, 0 }, 2500000);
	fake.window.types = sample_types_of(false, true);
	command_expect(&run, "record -d 0.001 -o /dev/null", EXIT_DONE, "samples:  1 in 0.0 s\n");
	says("waits:    1 completed, 0.003 s in total\n");
	says("us per sample or wait");
	says("at waiting: go tool pprof -http=: -tagroot=comm -sample_index=off_cpu /dev/null\n");
}

static void a_targeted_run_waits_longer_for_names(void **state)
{
	char words[64];

	(void)state;
	snprintf(words, sizeof(words), "record -d 0.001 -o /dev/null -p %d", getpid());
	command_expect(&run, words, EXIT_DONE, "");
	calls_are("[create][prepare 10000 ms][start][stop][finish 120000 ms][destroy]");
}

static pid_t target;

static void kill_target(void *context)
{
	(void)context;
	kill(target, SIGKILL);
}

/* Kills the target once the loop runs. */
static void kill_target_soon(void)
{
	int timer;

	loop_timer(fake.options.loop, 1, 0, kill_target, NULL, &timer);
}

static void a_run_ends_with_its_targets(void **state)
{
	char words[64];

	(void)state;
	target = fork();
	if (target == 0) {
		for (;;)
			pause();
	}
	fake.on_start = kill_target_soon;
	snprintf(words, sizeof(words), "record -o /dev/null -p %d", target);
	command_run(&run, words);
	kill(target, SIGKILL);
	waitpid(target, NULL, 0);
	assert_int_equal(run.status, EXIT_DONE);
	says("          all selected processes or threads have ended\n");
	says("          the selected processes or threads were on no CPU when samples were "
	     "taken\n");
}

/* ---- a command ------------------------------------------------------------------------------- */

static void a_command_is_followed_to_its_end(void **state)
{
	(void)state;
	command_expect(&run, "record -o /dev/null -- sh -c true", EXIT_DONE, "");
	calls_are("[create follow][prepare 250 ms][start][stop][finish 120000 ms][destroy]");
	says_not("ended with status");
	command_expect(&run, "record -o /dev/null -- false", 1,
		"fathom record: false ended with status 1\n");
	command_expect(&run, "record -a -o /dev/null -- true", EXIT_DONE, "");
	calls_are("[create][prepare 250 ms][start][stop][finish 120000 ms][destroy]");
}

static void stop_loop(void *context)
{
	(void)context;
	loop_stop(fake.options.loop);
}

static void kill_command(void *context)
{
	(void)context;
	kill((pid_t)fake.options.follow_pid, SIGKILL);
}

static void kill_command_soon(void)
{
	int timer;

	loop_timer(fake.options.loop, 1, 0, kill_command, NULL, &timer);
}

static void a_killed_command_is_reported(void **state)
{
	(void)state;
	fake.on_start = kill_command_soon;
	command_expect(&run, "record -o /dev/null -- sleep 1000", 128 + SIGKILL,
		"fathom record: sleep was killed by signal 9 (Killed)\n");
}

static void a_failed_profile_hides_no_status(void **state)
{
	(void)state;
	add_samples(*state, 3);
	fake.on_start = kill_command_soon;
	command_expect(&run, "record -o /dev/full -- sleep 1000", 128 + SIGKILL,
		"fathom record: cannot write /dev/full: No space left on device\n");
	says("fathom record: sleep was killed by signal 9 (Killed)\n");
	fake.on_start = NULL;
	command_expect(&run, "record -o /dev/full -- true", EXIT_FAILED,
		"fathom record: cannot write /dev/full: No space left on device\n");
}

/* As Ctrl-C does: it ends CMD, too. */
static void interrupt_both(void *context)
{
	siginfo_t info;

	kill_command(context);
	waitid(P_PID, (id_t)fake.options.follow_pid, &info, WEXITED | WNOWAIT);
	raise(SIGINT);
}

static void interrupt_both_soon(void)
{
	int timer;

	loop_timer(fake.options.loop, 1, 0, interrupt_both, NULL, &timer);
}

/* Lets CMD, which reads the FIFO, end, and runs the loop once more. */
static void run_until_command_ends(void)
{
	siginfo_t info;
	int timer, fifo = open(fifo_path, O_WRONLY | O_CLOEXEC);

	assert_true(fifo >= 0);
	close(fifo);
	waitid(P_PID, (id_t)fake.options.follow_pid, &info, WEXITED | WNOWAIT);
	loop_timer(fake.options.loop, 1, 0, stop_loop, NULL, &timer);
	loop_run(fake.options.loop);
}

static void a_command_that_did_not_end_the_run_has_no_status(void **state)
{
	char words[128];

	(void)state;
	fake.on_finish = run_until_command_ends;
	snprintf(fifo_path, sizeof(fifo_path), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo_path, 0600), 0);
	snprintf(words, sizeof(words), "record -d 0.001 -o /dev/null -- grep x %s", fifo_path);
	command_expect(&run, words, EXIT_DONE, "");
	says_not("ended with status");
	unlink(fifo_path);
	fake.on_finish = NULL;
	fake.on_start = interrupt_both_soon;
	command_expect(&run, "record -o /dev/null -- sleep 1000", EXIT_DONE, "");
	says_not("sleep");
}

static void a_command_that_does_not_exist_fails(void **state)
{
	(void)state;
	command_expect(&run, "record -o /dev/null -- /no/such", 127,
		"fathom record: cannot run /no/such: No such file or directory\n");
	calls_are("[create follow][prepare 250 ms][start][destroy]");
	command_expect(&run, "record -o /dev/null -- /etc/passwd", 126,
		"fathom record: cannot run /etc/passwd: Permission denied\n");
}

/* ---- signals --------------------------------------------------------------------------------- */

static void interrupt(void)
{
	raise(SIGINT);
}

static void terminate(void)
{
	raise(SIGTERM);
}

static void hang_up(void)
{
	raise(SIGHUP);
}

static void a_signal_ends_sampling_and_the_profile_is_written(void **state)
{
	static void (*const signals[])(void) = { interrupt, terminate, hang_up };

	add_samples(*state, 3);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		fake.on_start = signals[i];
		command_expect(&run, "record -o /dev/null", EXIT_DONE, "samples:  3");
		calls_are("[create][prepare 250 ms][start][stop][finish 120000 ms][destroy]");
	}
}

static void a_signal_before_sampling_leaves_an_empty_profile(void **state)
{
	(void)state;
	fake.on_prepare = interrupt;
	command_expect(&run, "record -o /dev/null", EXIT_DONE,
		"fathom record: interrupted before sampling began: the profile is empty\n");
	calls_are("[create][prepare 250 ms][destroy]");
	says_not("was not run");
	command_expect(&run, "record -o /dev/null -- sleep 1000", EXIT_DONE,
		"fathom record: sleep was not run\n");
}

/* ---- failures -------------------------------------------------------------------------------- */

static void a_step_that_fails_ends_the_run(void **state)
{
	char path[64], words[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/p", directory);
	snprintf(words, sizeof(words), "record -d1000 -o %s", path);
	fake.create_error = -EMFILE;
	command_expect(
		&run, words, EXIT_FAILED, "fathom: cannot load BPF cpu: Too many open files");
	calls_are("[create]");
	fake.create_error = 0;
	fake.prepare_error = -EIO;
	command_expect(&run, words, EXIT_FAILED, "");
	calls_are("[create][prepare 250 ms][destroy]");
	fake.prepare_error = 0;
	fake.start_error = -EBUSY;
	command_expect(
		&run, words, EXIT_FAILED, "fathom: cannot start sampling: Device or resource");
	calls_are("[create][prepare 250 ms][start][destroy]");
	fake.start_error = 0;
	fake.on_start = interrupt;
	fake.stop_error = -EIO;
	command_expect(&run, words, EXIT_FAILED, "");
	calls_are("[create][prepare 250 ms][start][stop][destroy]");
	assert_false(file_is_there(path));
}

static void a_profile_that_cannot_be_written_fails(void **state)
{
	add_samples(*state, 3);
	command_expect(&run, "record -d 0.001 -o /dev/full", EXIT_FAILED,
		"fathom record: cannot write /dev/full: No space left on device\n");
	says_not("samples: ");
}

/* ---- names that are missing ------------------------------------------------------------------ */

static void missing_indexes_are_reported(void **state)
{
	(void)state;
	fake.pending = 5;
	fake.pending_after = 2;
	fake.improving = (struct builds_improving){ .modules = 3 };
	command_expect(&run, "record -d 0.001 -o /dev/null", EXIT_DONE,
		"fathom record: 2 modules are not indexed yet: their frames have no names\n");
	says("debug files of 3 modules did not arrive in time: their frames "
	     "have names but no lines or inlined functions\n");
	says_not("indexing 5");
	fake.pending_after = 0;
	fake.improving.modules = 0;
	command_expect(&run, "record -d 0.001 -o /dev/null", EXIT_DONE, "");
	says_not("not indexed yet");
	says_not("in time");
}

/* ---- a terminal ------------------------------------------------------------------------------ */

static int terminal;

/* Makes standard error a terminal; the test holds its other end. */
static void open_terminal(void *context)
{
	int end;

	(void)context;
	end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	dup2(end, STDERR_FILENO);
	close(end);
}

static void run_on_terminal(const char *words)
{
	size_t size = 0;
	ssize_t got;

	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_int_equal(grantpt(terminal) | unlockpt(terminal), 0);
	run.prepare = open_terminal;
	command_run(&run, words);
	while ((got = read(terminal, run.err + size, sizeof(run.err) - 1 - size)) > 0)
		size += (size_t)got;
	run.err[size] = 0;
	close(terminal);
	assert_int_equal(run.status, EXIT_DONE);
}

static void a_terminal_sees_how_far_it_is(void **state)
{
	(void)state;
	fake.pending = 5;
	run_on_terminal("record -d 1.4 -o /dev/null");
	says("[start]\r\n\rrecording: 1 of 1 s, 12345 samples ");
	says("[stop]\r\n\r\033[Kindexing 5 new modules (done once)");
	fake.on_start = interrupt;
	run_on_terminal("record -o /dev/null");
	says("[start]\r\n[stop]\r\n\r\033[K");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, report_teardown)
	const struct CMUnitTest tests[] = {
		CASE(nonsense_is_bad_usage_and_writes_nothing),
		CASE(an_impossible_output_is_reported_at_once),
		CASE(processes_that_do_not_exist_fail),
		CASE(a_run_goes_step_by_step),
		CASE(folded_text_goes_to_standard_output),
		CASE(a_profile_on_standard_output_is_not_looked_at_by_name),
		CASE(waits_are_said_with_the_samples),
		CASE(a_targeted_run_waits_longer_for_names),
		CASE(a_run_ends_with_its_targets),
		CASE(a_command_is_followed_to_its_end),
		CASE(a_killed_command_is_reported),
		CASE(a_failed_profile_hides_no_status),
		CASE(a_command_that_did_not_end_the_run_has_no_status),
		CASE(a_command_that_does_not_exist_fails),
		CASE(a_signal_ends_sampling_and_the_profile_is_written),
		CASE(a_signal_before_sampling_leaves_an_empty_profile),
		CASE(a_step_that_fails_ends_the_run),
		CASE(a_profile_that_cannot_be_written_fails),
		CASE(missing_indexes_are_reported),
		CASE(a_terminal_sees_how_far_it_is),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	setenv("XDG_CACHE_HOME", directory, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
