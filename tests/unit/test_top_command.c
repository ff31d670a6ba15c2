/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom top` with a fake sampler, and `fathom agent` without a daemon: what is refused, and what
 * is shown on a pipe and on a terminal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "tests/unit/command_fixture.h"
#include "tests/unit/command_sampler.h"

enum { REST_MS = 10000 }; /* for what a terminal still has to deliver */

static struct command_run run;

static int setup(void **state)
{
	int err = report_setup(state);
	struct fixture *f = *state;
	struct profile_frame frame = in_program(START + 5, 0, f);
	struct profile_sample sample = { .process = f->one->number,
		.pid = f->one->pid,
		.tid = f->one->pid,
		.count = 1,
		.weight = 50000000,
		.comm = "thread" };

	if (err ||
		profile_stack(
			f->profile, &(struct profile_stack){ &frame, 1, 0, 0 }, &sample.stack) ||
		profile_add(f->profile, &sample))
		return -1;
	fake = (struct sampler){ .world = f,
		.window = { .period = 10101010, .began_ns = 1, .ended_ns = 100000001 } };
	run = (struct command_run){ 0 };
	return 0;
}

static size_t count(const char *text, const char *word)
{
	size_t found = 0;

	while ((text = strstr(text, word)) != NULL) {
		found++;
		text += strlen(word);
	}
	return found;
}

static void contains(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("'%s' is not in:\n%s", wanted, text);
}

/* ---- the command line ------------------------------------------------------------------------ */

static void invalid_arguments_are_bad_usage(void **state)
{
	static const struct {
		const char *words, *message;
	} cases[] = {
		{ "top -b -d 0.099", "fathom top: -d must be 0.1 to 3600 seconds\n" },
		{ "top -b -d 3600001ms", "-d must be 0.1 to 3600 seconds" },
		{ "top -b -n 0", "fathom top: -n must be 1 or more\n" },
		{ "top", "fathom top: standard output is not a terminal: use -b" },
		{ "top -b --by thread", "--by must be process, function or goroutine\n" },
		{ "top -b --sort self", "--sort must be cpu, total, pid or name\n" },
		{ "top -b --filter "
		  "0123456789012345678901234567890123456789012345678901234567890123",
			"--filter is too long: 63 bytes at most\n" },
		{ "top -b -F0", "fathom top: -F must be 1 to 10000" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		command_expect(&run, cases[i].words, EXIT_USAGE, cases[i].message);
		assert_string_equal(run.out, "");
		assert_null(strchr(run.err, '['));
	}
	command_expect(&run, "top -b -p 4194305", EXIT_FAILED, "there is no process 4194305");
}

/* ---- tables on a pipe ------------------------------------------------------------------------ */

static void tables_come_one_after_the_other(void **state)
{
	(void)state;
	fake.bpf_runs = 1;
	fake.bpf_ns = 1;
	command_expect(&run, "top -b -n 2 -d 0.1", EXIT_DONE,
		"[create]\n[prepare 250 ms]\n[start]\n[destroy]\n");
	assert_int_equal(count(run.out, "fathom top - "), 2);
	contains(run.out, "last 0.1 s: 0.50 of ");
	contains(run.out, " CPUs, 10 samples/s (99 Hz)\n");
	contains(run.out, "lost: 0; complete stacks: ");
	contains(run.out, "processes by cpu: 1\n");
	contains(run.out, "50.0     0.0  one              _start\n");
	assert_null(strchr(run.out, '\033'));
	assert_null(strstr(run.out, "help"));
}

static void options_choose_what_is_shown(void **state)
{
	(void)state;
	fake.pending = 7;
	command_expect(&run, "top -b -n 1 -d 0.1 -F 49 --by function --sort name --filter start",
		EXIT_DONE, "");
	contains(run.out, "(49 Hz)\n");
	contains(run.out, "; indexing 7 modules\n");
	contains(run.out, "functions by name, with 'start': 1 of 1\n");
	contains(run.out, "100.00  100.00  program              _start\n");
	command_expect(&run, "top -b -n 1 -d 0.1 --filter=x", EXIT_DONE, "");
	contains(run.out, "processes by cpu, with 'x': 0 of 1\n");
}

static void the_longest_filter_fits(void **state)
{
	(void)state;
	command_expect(&run,
		"top -b -n 1 -d 0.1 --filter "
		"012345678901234567890123456789012345678901234567890123456789012",
		EXIT_DONE, "");
	contains(run.out, "89012': 0 of 1\n");
}

static void set_columns(void *context)
{
	setenv("COLUMNS", context, 1);
}

static size_t widest(const char *text)
{
	size_t width = 0, most = 0;

	for (; *text; text++) {
		width = *text == '\n' ? 0 : width + 1;
		most = MAX(most, width);
	}
	return most;
}

static void columns_of_the_environment_limit_lines(void **state)
{
	static const struct {
		const char *columns;
		bool used;
	} cases[] = { { "20", true }, { "19", false }, { "30x", false }, { "1025", false },
		{ "", false }, { "1024", true } };

	(void)state;
	run.prepare = set_columns;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		run.context = (void *)cases[i].columns;
		command_expect(&run, "top -b -n 1 -d 0.1", EXIT_DONE, "");
		if (cases[i].used)
			assert_true(widest(run.out) <= strtoul(cases[i].columns, NULL, 10));
		else
			assert_true(widest(run.out) > 30);
	}
}

static void print_options(void)
{
	const struct sampler_options *o = &fake.options;

	fprintf(stderr, "[limit %llu, profiles %llu, cache %llu in %s, debug %s, %s]\n",
		(unsigned long long)o->memory_limit_bytes,
		(unsigned long long)o->profile_limit_bytes,
		(unsigned long long)o->cache_limit_bytes, o->cache_directory, o->debug_directories,
		o->debuginfod_urls);
}

static void options_reach_the_sampler(void **state)
{
	(void)state;
	fake.on_create = print_options;
	command_expect(&run,
		"top -b -n 1 -d 0.1 --memory-limit=64M --cache-directory=/x --cache-max-bytes=3M "
		"--debuginfod-urls=http://y --debuginfo-directories=/z",
		EXIT_DONE,
		"[limit 67108864, profiles 16777216, cache 3145728 in /x, debug /z, http://y]");
}

static void a_step_that_fails_ends_it(void **state)
{
	(void)state;
	fake.create_error = -EPERM;
	command_expect(&run, "top -b -d 0.1", EXIT_FAILED, "fathom: cannot load BPF cpu: ");
	fake.create_error = 0;
	fake.prepare_error = -EIO;
	command_expect(&run, "top -b -d 0.1", EXIT_FAILED, "cannot start sampling: Input/output");
	assert_null(strstr(run.err, "[start]"));
	fake.prepare_error = 0;
	fake.start_error = -EIO;
	command_expect(&run, "top -b -d 0.1", EXIT_FAILED, "cannot start sampling: Input/output");
	contains(run.err, "[start]\n");
	contains(run.err, "[destroy]\n");
	assert_string_equal(run.out, "");
}

static void close_reader(void *context)
{
	int ends[2];

	(void)context;
	if (pipe(ends))
		_exit(99);
	dup2(ends[1], STDOUT_FILENO);
	close(ends[0]);
	close(ends[1]);
}

static void fill_disk(void *context)
{
	int full = open("/dev/full", O_WRONLY);

	(void)context;
	dup2(full, STDOUT_FILENO);
	close(full);
}

static void a_reader_that_closes_is_not_an_error(void **state)
{
	(void)state;
	run.prepare = close_reader;
	command_expect(&run, "top -b -d 0.1", EXIT_DONE, "[destroy]\n");
	run.prepare = fill_disk;
	command_expect(&run, "top -b -d 0.1", EXIT_FAILED,
		"fathom top: cannot write: No space left on device\n");
}

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

static void quit(void)
{
	raise(SIGQUIT);
}

static void a_signal_ends_it_cleanly(void **state)
{
	static void (*const signals[])(void) = { interrupt, terminate, hang_up, quit };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		fake.on_start = signals[i];
		command_expect(&run, "top -b -d 3600", EXIT_DONE, "[start]\n[destroy]\n");
		assert_string_equal(run.out, "");
	}
}

/* ---- a terminal ------------------------------------------------------------------------------ */

/*
 * The user types the next of KEYS when the screen has reacted to the last one and is quiet; words
 * in capitals are events.
 */
static struct {
	int terminal;
	const char *const *keys; /* NULL ends */
	const char *name; /* $TERM */
	bool answered;
	int timer;
} user;

static bool see(void)
{
	char bytes[4096];
	ssize_t got, all = 0;

	while ((got = read(user.terminal, bytes, sizeof(bytes))) > 0) {
		fwrite(bytes, 1, (size_t)got, stderr);
		all += got;
	}
	return all > 0;
}

static void type_next(void *context)
{
	bool moving = see();

	(void)context;
	user.answered |= moving;
	if (moving || !user.answered || !*user.keys)
		return;
	fprintf(stderr, "\n<%s>", **user.keys == '\033' ? "ESC" : *user.keys);
	if (!strcmp(*user.keys, "WINCH"))
		raise(SIGWINCH);
	else if (!strcmp(*user.keys, "CONT"))
		raise(SIGCONT);
	else if (!strcmp(*user.keys, "TICK") || !strcmp(*user.keys, "HELD"))
		fake.options.full(fake.options.sealed_context);
	else
		(void)!write(user.terminal, *user.keys, strlen(*user.keys));
	user.answered = !strcmp(*user.keys, "HELD"); /* HELD gets no answer */
	user.keys++;
}

static void begin_typing(void)
{
	loop_timer(fake.options.loop, 20000000, 20000000, type_next, NULL, &user.timer);
}

static void use_terminal(void *context)
{
	int end = open(ptsname(user.terminal), O_RDWR | O_NOCTTY);

	(void)context;
	dup2(end, STDIN_FILENO);
	dup2(end, STDOUT_FILENO);
	close(end);
	setenv("TERM", user.name, 1);
}

/*
 * Reads what TERMINAL's other END has written. What is written there arrives later, in order: a
 * mark shows that all of it has.
 */
static void read_rest(int terminal, int end)
{
	static const char mark[] = "<end>";
	struct pollfd readable = { .fd = terminal, .events = POLLIN };
	char *found;

	run.out_size = 0;
	run.out[0] = 0;
	assert_int_equal(write(end, mark, sizeof(mark) - 1), sizeof(mark) - 1);
	while (!(found = strstr(run.out, mark))) {
		ssize_t got;

		assert_int_equal(poll(&readable, 1, REST_MS), 1);
		got = read(terminal, run.out + run.out_size, sizeof(run.out) - 1 - run.out_size);
		assert_true(got > 0);
		run.out_size += (size_t)got;
		run.out[run.out_size] = 0;
	}
	*found = 0;
	run.out_size = (size_t)(found - run.out);
}

static void run_on_terminal(const char *words, const char *const *keys)
{
	struct winsize size = { .ws_row = 12, .ws_col = 70 };
	struct termios before = { 0 }, after = { 0 };
	int end;

	user.terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	assert_int_equal(grantpt(user.terminal) | unlockpt(user.terminal), 0);
	end = open(ptsname(user.terminal), O_RDWR | O_NOCTTY);
	assert_int_equal(ioctl(end, TIOCSWINSZ, &size), 0);
	assert_int_equal(tcgetattr(end, &before), 0);
	user.keys = keys;
	fake.on_start = begin_typing;
	run.prepare = use_terminal;
	command_run(&run, words);
	assert_int_equal(run.status, EXIT_DONE);
	read_rest(user.terminal, end);
	/* The modes of the terminal are restored. */
	assert_int_equal(tcgetattr(end, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	close(end);
	close(user.terminal);
}

/* The output between KEY and the next one. */
static char *shown_after(const char *key)
{
	static char part[16384];
	char mark[32];
	const char *begin, *end;

	snprintf(mark, sizeof(mark), "\n<%s>", key);
	begin = strstr(run.err, mark);
	if (!begin)
		fail_msg("%s was not typed:\n%s", key, run.err);
	begin += strlen(mark);
	end = strstr(begin, "\n<");
	snprintf(part, sizeof(part), "%.*s", (int)(end ? (size_t)(end - begin) : strlen(begin)),
		begin);
	return part;
}

static void keys_change_the_screen(void **state)
{
	static const char *const keys[] = { "TICK", "f", "/", "x", "\033", "?", "WINCH", " ",
		"CONT", "q", NULL };

	(void)state;
	user.name = "xterm";
	run_on_terminal("top -d 3600", keys);
	contains(run.err, "\033[?1049h\033[?25l\033[H\033[2J"); /* entered */
	contains(run.err, "waiting for the first interval");
	contains(shown_after("TICK"), "processes by cpu: 1; ? for help");
	contains(shown_after("f"), "functions by self: 1");
	contains(shown_after("/"), "filter: _  (Enter: keep, Esc: as before)");
	contains(shown_after("x"), "filter: x_");
	/* Escape alone is a key once nothing has followed for a moment. */
	contains(shown_after("ESC"), "functions by self: 1");
	contains(shown_after("?"), "p f g     processes, functions, goroutines");
	contains(shown_after("WINCH"), "p f g     processes, functions, goroutines");
	contains(shown_after("CONT"), "\033[m\033[?25h\033[?1049l\033[?1049h\033[?25l");
	contains(run.out, "\033[m\033[?25h\033[?1049l"); /* left */
}

static void a_paused_screen_stays(void **state)
{
	static const char *const keys[] = { "TICK", " ", "HELD", "p", "q", NULL };

	(void)state;
	user.name = "xterm";
	run_on_terminal("top -d 3600", keys);
	contains(shown_after(" "), ", PAUSED");
	assert_string_equal(shown_after("HELD"), "");
	contains(shown_after("p"), "processes by cpu: 1, PAUSED");
}

static void a_dumb_terminal_gets_plain_text(void **state)
{
	static const char *const keys[] = { "TICK", "q", NULL };

	(void)state;
	user.name = "dumb";
	run_on_terminal("top -d 3600", keys);
	contains(shown_after("TICK"), "processes by cpu: 1\r\n");
	assert_null(strchr(run.err, '\033'));
	assert_null(strchr(run.out, '\033'));
}

static void it_ends_after_its_tables(void **state)
{
	static const char *const keys[] = { NULL };

	(void)state;
	user.name = "xterm";
	run_on_terminal("top -d 0.1 -n 3", keys);
	contains(run.out, "\033[m\033[?25h\033[?1049l");
}

static void warn(void)
{
	log_warn("something is odd", "%s", "");
}

/* Unless the user asks for them, or there is no screen. */
static void log_lines_do_not_disturb_the_screen(void **state)
{
	static const char *const keys[] = { "q", NULL };

	(void)state;
	user.name = "xterm";
	fake.on_prepare = warn;
	run_on_terminal("top -d 3600", keys);
	assert_null(strstr(run.err, "something is odd"));
	run_on_terminal("top -d 3600 --log-level=warn", keys);
	contains(run.err, "something is odd");
	fake.on_start = NULL;
	run.prepare = NULL;
	command_expect(&run, "top -b -n 1 -d 0.1", EXIT_DONE, "something is odd");
}

/* ---- the agent ------------------------------------------------------------------------------- */

static void the_agent_reads_its_file_first(void **state)
{
	char path[] = "/tmp/fathom-test-XXXXXX", words[64];
	FILE *file = fdopen(mkstemp(path), "w");

	(void)state;
	fputs("node: here\n", file);
	fclose(file);
	snprintf(words, sizeof(words), "agent --config-path %s", path);
	command_expect(&run, words, EXIT_DONE, "[agent here, 3 arguments of agent]\n");
	command_expect(&run, "agent", EXIT_DONE, "[agent unnamed, 1 arguments of agent]\n");
	fake.start_error = EXIT_FAILED;
	command_expect(&run, "agent", EXIT_FAILED, "");
	file = fopen(path, "w");
	fputs("nodes: here\n", file);
	fclose(file);
	command_expect(&run, words, EXIT_USAGE, "fathom agent: /tmp/fathom-test-");
	contains(run.err, ":1: ");
	assert_null(strstr(run.err, "[agent"));
	unlink(path);
	command_expect(&run, words, EXIT_USAGE, "No such file");
	command_expect(&run, "agent --config-path=", EXIT_USAGE, "--config-path needs a file\n");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, report_teardown)
	const struct CMUnitTest tests[] = {
		CASE(invalid_arguments_are_bad_usage),
		CASE(tables_come_one_after_the_other),
		CASE(options_choose_what_is_shown),
		CASE(the_longest_filter_fits),
		CASE(columns_of_the_environment_limit_lines),
		CASE(options_reach_the_sampler),
		CASE(a_step_that_fails_ends_it),
		CASE(a_reader_that_closes_is_not_an_error),
		CASE(a_signal_ends_it_cleanly),
		CASE(keys_change_the_screen),
		CASE(a_paused_screen_stays),
		CASE(a_dumb_terminal_gets_plain_text),
		CASE(it_ends_after_its_tables),
		CASE(log_lines_do_not_disturb_the_screen),
		CASE(the_agent_reads_its_file_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
