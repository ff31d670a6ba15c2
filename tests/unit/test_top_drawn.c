/* SPDX-License-Identifier: Apache-2.0 */
/* agent/top: whole screens, as a terminal receives them, and the terminal's modes and size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/top/keys.h"
#include "agent/top/screen.h"
#include "agent/top/terminal.h"
#include "base/cleanup.h"
#include "tests/unit/refused_call.h"

static const uint64_t SECOND_NS = 1000000000;

/* ---- screens --------------------------------------------------------------------------------- */

/* Three rows of each kind, of 2 s of CPU time within 10 s. */
struct world {
	struct row rows[ROWS_KINDS][3];
	struct snapshot snapshot;
	struct metrics metrics;
	struct screen_facts facts;
	struct view view;
	struct buffer out;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		return -1;
	for (int by = 0; by < ROWS_KINDS; by++) {
		for (unsigned int i = 0; i < 3; i++)
			w->rows[by][i] = (struct row){
				.pid = 10 + i,
				.fiber_id = by == ROWS_FIBER ? 70 + i : 0,
				.self_ns = (3 - i) * SECOND_NS / 3,
				.total_ns = SECOND_NS,
				.kernel_ns = SECOND_NS / 10,
				.name = (char *)(const char *[]){ "alpha", "beta", "gamma" }[i],
				.detail = (char *)(const char *[]){ "one", "two", "three" }[i],
			};
		w->snapshot.by[by] = (struct rows){ .rows = w->rows[by], .count = 3 };
	}
	w->snapshot.weight_ns = 2 * SECOND_NS;
	w->snapshot.summary.of[SAMPLE_TYPE_TICKS].count = 198;
	w->snapshot.summary.user_stacks = 100;
	w->snapshot.summary.complete_stacks = 75;
	w->facts = (struct screen_facts){ .interval_ns = 10 * SECOND_NS,
		.frequency_hz = 99,
		.own_ns = SECOND_NS / 10,
		.cpus = 4,
		.metrics = &w->metrics };
	setenv("TZ", "UTC", 1);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	buffer_deinit(&w->out);
	free(w);
	return 0;
}

static const char *drawn(struct world *w, bool has_snapshot, struct screen_form form)
{
	buffer_deinit(&w->out);
	buffer_init(&w->out, 1 << 20);
	assert_int_equal(screen_draw(&w->out, &w->view, has_snapshot ? &w->snapshot : NULL,
				 &w->facts, &form),
		0);
	assert_int_equal(buffer_append(&w->out, "", 1), 0);
	return (const char *)w->out.bytes;
}

static const char *plain(struct world *w)
{
	return drawn(w, true, (struct screen_form){ 0 });
}

static void processes_as_text(void **state)
{
	struct world *w = *state;

	assert_string_equal(plain(w),
		"fathom top - 00:00:00, last 10.0 s: 0.20 of 4 CPUs, 20 samples/s (99 Hz)\n"
		"lost: 0; complete stacks: 75.0%; own CPU: 1.0%\n"
		"processes by cpu: 3\n"
		"    PID    %CPU    %SYS  COMMAND          HOTTEST FUNCTION\n"
		"     10    10.0     1.0  alpha            one\n"
		"     11     6.7     1.0  beta             two\n"
		"     12     3.3     1.0  gamma            three\n\n");
}

static void functions_as_text(void **state)
{
	struct world *w = *state;

	view_show(&w->view, ROWS_FUNCTION);
	w->view.reverse = true;
	w->view.paused = true;
	w->facts.time_s = 3661;
	w->facts.pending_builds = 5;
	metrics_add(&w->metrics, METRIC_LOST_RING_FULL, 3);
	metrics_add(&w->metrics, METRIC_LOST_BPF_ERROR, 4);
	assert_string_equal(plain(w),
		"fathom top - 01:01:01, last 10.0 s: 0.20 of 4 CPUs, 20 samples/s (99 Hz)\n"
		"lost: 7 (ring_full 3, bpf_error 4); complete stacks: 75.0%; own CPU: 1.0%; "
		"indexing 5 modules\n"
		"functions by self reversed: 3, PAUSED\n"
		" SELF%  TOTAL%  MODULE               FUNCTION\n"
		" 16.67   50.00  three                gamma\n"
		" 33.33   50.00  two                  beta\n"
		" 50.00   50.00  one                  alpha\n\n");
}

static void goroutines_as_text(void **state)
{
	struct world *w = *state;

	view_show(&w->view, ROWS_FIBER);
	snprintf(w->view.filter, sizeof(w->view.filter), "TA");
	assert_string_equal(strstr(plain(w), "goroutines"),
		"goroutines by cpu, with 'TA': 1 of 3\n"
		"    PID       GOID   %CPU  COMMAND          FUNCTION\n"
		"     11         71    6.7  beta             two\n\n");
	w->snapshot.by[ROWS_FIBER].count = 0;
	assert_null(strstr(plain(w), "no goroutine was sampled"));
	w->view.filter[0] = 0;
	assert_non_null(strstr(plain(w), "FUNCTION\nno goroutine was sampled\n\n"));
	view_show(&w->view, ROWS_PROCESS);
	w->snapshot.by[ROWS_PROCESS].count = 0;
	assert_null(strstr(plain(w), "no goroutine"));
}

static void an_empty_interval_divides_by_nothing(void **state)
{
	struct world *w = *state;

	w->facts.interval_ns = 0;
	w->snapshot.weight_ns = 0;
	w->snapshot.summary.user_stacks = 0;
	assert_non_null(strstr(plain(w), "last 0.0 s: 0.00 of 4 CPUs, 0 samples/s (99 Hz)\n"
					 "lost: 0; own CPU: 0.0%\n"));
}

static void a_terminal_gets_its_sequences(void **state)
{
	struct world *w = *state;

	assert_string_equal(drawn(w, true, (struct screen_form){ 40, 6, true }),
		"\033[Hfathom top - 00:00:00, last 10.0 s: 0.2\033[K\r\n"
		"lost: 0; complete stacks: 75.0%; own CP\033[K\r\n"
		"processes by cpu: 3; ? for help\033[K\r\n"
		"\033[7m    PID    %CPU    %SYS  COMMAND       \033[m\033[K\r\n"
		"     10    10.0     1.0  alpha         \033[K\r\n"
		"     11     6.7     1.0  beta          \033[K\033[J");
	assert_int_equal(w->view.page, 2);
}

static void before_the_first_interval(void **state)
{
	struct world *w = *state;

	w->facts.interval_ns = w->facts.own_ns = 0;
	assert_string_equal(drawn(w, false, (struct screen_form){ 0 }),
		"fathom top - 00:00:00, 99 Hz, waiting for the first interval\n"
		"lost: 0; own CPU: 0.0%\n"
		"processes by cpu: 0\n"
		"    PID    %CPU    %SYS  COMMAND          HOTTEST FUNCTION\n\n");
}

static void help_takes_the_place_of_rows(void **state)
{
	struct world *w = *state;
	const char *text;

	w->view.help = true;
	text = plain(w);
	assert_null(strstr(text, "alpha"));
	assert_null(strstr(text, "processes by"));
	assert_non_null(strstr(text, "\n\np f g     processes, functions, goroutines (Tab"));
	assert_non_null(strstr(text,
		"\nFunctions: share of all samples; total includes the functions they call.\n"));
	/* It has no line in reverse video. */
	assert_null(strstr(drawn(w, true, (struct screen_form){ 80, 24, true }), "\033[7m"));
	/* The help is cut at the end of the screen. */
	assert_non_null(strstr(drawn(w, true, (struct screen_form){ 80, 4, false }), "p f g"));
	assert_null(strstr(drawn(w, true, (struct screen_form){ 80, 4, false }), "s r"));
}

static void a_filter_that_is_typed_is_shown(void **state)
{
	struct world *w = *state;

	w->view.editing = true;
	snprintf(w->view.filter, sizeof(w->view.filter), "be");
	assert_non_null(strstr(plain(w), "\nfilter: be_  (Enter: keep, Esc: as before)\n"));
	assert_non_null(strstr(plain(w), "beta"));
	assert_null(strstr(plain(w), "alpha"));
}

/* The last column stays empty, unless it is the only one. */
static void a_screen_of_one_column_shows_that_column(void **state)
{
	struct world *w = *state;

	assert_memory_equal(drawn(w, true, (struct screen_form){ 1, 24, false }), "f\nl\np\n", 6);
	assert_memory_equal(drawn(w, true, (struct screen_form){ 2, 24, false }), "f\nl\np\n", 6);
	assert_memory_equal(drawn(w, true, (struct screen_form){ 3, 24, false }), "fa\nlo\np", 7);
}

/* The first row shown, for each position that a key may have asked for. */
static void rows_begin_where_they_fill_the_screen(void **state)
{
	static const struct {
		size_t first, lines;
		const char *top, *bottom;
		size_t shown_first;
	} cases[] = {
		{ 0, 6, "alpha", "beta", 0 },
		{ 1, 6, "beta", "gamma", 1 },
		{ 2, 6, "beta", "gamma", 1 },
		{ SIZE_MAX / 2, 6, "beta", "gamma", 1 },
		{ 2, 5, "gamma", "gamma", 2 },
		{ 3, 5, "gamma", "gamma", 2 },
		{ 1, 7, "alpha", "gamma", 0 },
		{ 3, 0, "alpha", "gamma", 0 },
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text, *row;

		w->view.first = cases[i].first;
		text = drawn(w, true, (struct screen_form){ 80, cases[i].lines, false });
		row = strstr(text, "HOTTEST");
		assert_non_null(strstr(row, cases[i].top));
		assert_non_null(strstr(strstr(row, cases[i].top), cases[i].bottom));
		if (cases[i].shown_first > 0)
			assert_null(strstr(row, "alpha"));
		if (!strcmp(cases[i].bottom, "beta"))
			assert_null(strstr(row, "gamma"));
		assert_int_equal(w->view.first, cases[i].shown_first);
	}
}

/* ---- keys and the view ------------------------------------------------------------------------
 */

static void every_key_of_the_view(void **state)
{
	struct view v = { .page = 4 };

	(void)state;
	assert_int_equal(view_key(&v, 'j'), VIEW_REDRAW);
	assert_int_equal(view_key(&v, KEY_DOWN), VIEW_REDRAW);
	assert_int_equal(v.first, 2);
	assert_int_equal(view_key(&v, 'k'), VIEW_REDRAW);
	assert_int_equal(v.first, 1);
	assert_int_equal(view_key(&v, KEY_UP), VIEW_REDRAW);
	assert_int_equal(v.first, 0);
	assert_int_equal(view_key(&v, KEY_PAGE_DOWN), VIEW_REDRAW);
	assert_int_equal(v.first, 4);
	assert_int_equal(view_key(&v, KEY_PAGE_UP), VIEW_REDRAW);
	assert_int_equal(v.first, 0);
	assert_int_equal(view_key(&v, KEY_END), VIEW_REDRAW);
	assert_true(v.first > 1 << 30);
	assert_int_equal(view_key(&v, KEY_HOME), VIEW_REDRAW);
	assert_int_equal(v.first, 0);
	v.page = 0;
	view_key(&v, KEY_PAGE_DOWN);
	assert_int_equal(v.first, 1);
	assert_int_equal(view_key(&v, 'f'), VIEW_REDRAW);
	assert_int_equal(v.by, ROWS_FUNCTION);
	assert_int_equal(v.first, 0);
	assert_int_equal(view_key(&v, 'g'), VIEW_REDRAW);
	assert_int_equal(v.by, ROWS_FIBER);
	assert_int_equal(view_key(&v, 'p'), VIEW_REDRAW);
	assert_int_equal(v.by, ROWS_PROCESS);
	assert_int_equal(view_key(&v, '\t'), VIEW_REDRAW);
	assert_int_equal(v.by, ROWS_FUNCTION);
	assert_int_equal(view_key(&v, 'r'), VIEW_REDRAW);
	assert_true(v.reverse);
	v.first = 3;
	assert_int_equal(view_key(&v, 's'), VIEW_REDRAW);
	assert_false(v.reverse);
	assert_int_equal(v.first, 0);
	assert_int_equal(view_key(&v, ' '), VIEW_REDRAW);
	assert_true(v.paused);
	assert_int_equal(view_key(&v, ' '), VIEW_REDRAW);
	assert_false(v.paused);
	assert_int_equal(view_key(&v, 'L' & 0x1f), VIEW_REDRAW);
	assert_int_equal(view_key(&v, 'x'), VIEW_NOTHING);
	assert_int_equal(view_key(&v, 'Q'), VIEW_QUIT);
}

static void help_ends_with_any_key(void **state)
{
	struct view v = { 0 };

	(void)state;
	assert_int_equal(view_key(&v, 'h'), VIEW_REDRAW);
	assert_true(v.help);
	assert_int_equal(view_key(&v, 'q'), VIEW_REDRAW);
	assert_false(v.help);
	view_key(&v, '?');
	assert_true(v.help);
	assert_int_equal(view_key(&v, 'j'), VIEW_REDRAW);
	assert_int_equal(v.first, 0);
}

static void a_filter_begins_at_the_top(void **state)
{
	struct view v = { .first = 5 };

	(void)state;
	assert_int_equal(view_key(&v, '/'), VIEW_REDRAW);
	assert_int_equal(view_key(&v, 'a'), VIEW_REDRAW);
	assert_int_equal(v.first, 0);
	view_key(&v, 0x1f); /* the largest control character, and the first key beyond bytes */
	view_key(&v, KEY_UP);
	assert_string_equal(v.filter, "a");
	view_key(&v, ' ');
	view_key(&v, 0xff);
	assert_string_equal(v.filter, "a \xff");
}

static void names_of_tables_and_orders(void **state)
{
	enum rows_by by;
	enum rows_key key;

	(void)state;
	assert_int_equal(view_by_of_name("goroutine", &by), 0);
	assert_int_equal(by, ROWS_FIBER);
	assert_int_equal(view_by_of_name("process", &by), 0);
	assert_int_equal(by, ROWS_PROCESS);
	assert_int_equal(view_by_of_name("goroutines", &by), -EINVAL);
	assert_int_equal(view_key_of_name("name", &key), 0);
	assert_int_equal(key, ROWS_NAME);
	assert_int_equal(view_key_of_name("self", &key), -EINVAL);
	assert_string_equal(view_key_name(ROWS_FUNCTION, ROWS_CPU), "self");
	assert_string_equal(view_key_name(ROWS_FUNCTION, ROWS_TOTAL), "total");
	assert_string_equal(view_key_name(ROWS_PROCESS, ROWS_CPU), "cpu");
}

static int feed(struct keys *k, const char *bytes)
{
	int key = KEY_NONE;

	for (; *bytes; bytes++)
		key = keys_feed(k, (uint8_t)*bytes);
	return key;
}

static void sequences_end_where_they_should(void **state)
{
	static const struct {
		const char *bytes;
		int key;
	} cases[] = { { "\033[7~", KEY_HOME }, { "\033[8~", KEY_END }, { "\033OB", KEY_DOWN },
		{ "\033OH", KEY_HOME }, { "\033OF", KEY_END }, { "\033[C", KEY_NONE },
		{ "\033x", KEY_NONE }, { "\033[2~", KEY_NONE }, { "\033[51~", KEY_NONE },
		{ "\033[0005~", KEY_PAGE_UP }, { "\033[:5~", KEY_PAGE_UP },
		{ "\033[/6~", KEY_PAGE_DOWN }, { "\033[@", KEY_NONE },
		{ "\033[4294967301~", KEY_NONE }, { "\t", '\t' } };
	struct keys k = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(feed(&k, cases[i].bytes), cases[i].key);
		assert_false(keys_waiting(&k));
	}
	/* A sequence of 32 bytes is given up; what follows is text again. */
	assert_int_equal(feed(&k, "\033[0000000000000000000000000000000"), KEY_NONE);
	assert_true(keys_waiting(&k));
	assert_int_equal(feed(&k, "0"), KEY_NONE);
	assert_false(keys_waiting(&k));
	assert_int_equal(feed(&k, "5"), '5');
}

/* ---- the terminal -----------------------------------------------------------------------------
 */

static struct refused_modes {
	int error; /* errno of the next calls */
	unsigned int times; /* left */
} refused_modes;

/* In the place of libc's, which it calls. */
int tcsetattr(int fd, int when, const struct termios *modes)
{
	int (*real)(int, int, const struct termios *) = dlsym(RTLD_NEXT, "tcsetattr");

	if (!refused_modes.times)
		return real(fd, when, modes);
	refused_modes.times--;
	errno = refused_modes.error;
	return -1;
}

struct pty {
	int user, end; /* the user's side, and the program's side */
	struct loop *loop;
	struct output *output;
	struct terminal terminal;
};

static void ignore(void *context)
{
	(void)context;
}

static void ignore_error(void *context, int error)
{
	(void)context;
	(void)error;
}

static void open_pty(struct pty *p, const char *name)
{
	p->user = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	assert_int_equal(grantpt(p->user) | unlockpt(p->user), 0);
	p->end = open(ptsname(p->user), O_RDWR | O_NOCTTY);
	assert_int_equal(loop_create(&p->loop), 0);
	assert_int_equal(output_create(
				 &(struct output_options){
					 .fd = p->end,
					 .loop = p->loop,
					 .drained = ignore,
					 .failed = ignore_error,
				 },
				 &p->output),
		0);
	terminal_init(&p->terminal, p->end, p->end, name);
}

static void close_pty(struct pty *p)
{
	output_destroy(p->output);
	loop_destroy(p->loop);
	close(p->end);
	close(p->user);
}

/* Checks the terminal's output since the last call. */
static void shows(const struct pty *p, const char *expected)
{
	char text[256];
	size_t size = 0;

	while (size < strlen(expected)) {
		ssize_t got = read(p->user, text + size, sizeof(text) - 1 - size);

		assert_true(got > 0 || errno == EAGAIN);
		size += got > 0 ? (size_t)got : 0;
	}
	text[size] = 0;
	assert_string_equal(text, expected);
}

static bool is_cooked(const struct pty *p)
{
	struct termios modes;

	assert_int_equal(tcgetattr(p->end, &modes), 0);
	assert_true(modes.c_lflag & ISIG);
	assert_int_equal(!(modes.c_lflag & ECHO), !(modes.c_lflag & ICANON));
	return modes.c_lflag & ICANON;
}

static void the_terminal_is_taken_and_given_back(void **state)
{
	struct pty p;

	(void)state;
	open_pty(&p, "xterm");
	assert_true(p.terminal.ansi);
	terminal_leave(&p.terminal, p.output); /* nothing to give back */
	for (int i = 0; i < 2; i++) {
		assert_true(is_cooked(&p));
		assert_int_equal(terminal_enter(&p.terminal, p.output), 0);
		assert_false(is_cooked(&p));
		shows(&p, "\033[?1049h\033[?25l\033[H\033[2J");
		terminal_leave(&p.terminal, p.output);
		assert_true(is_cooked(&p));
		shows(&p, "\033[m\033[?25h\033[?1049l");
	}
	/* After entering twice, the restored modes are still the shell's. */
	assert_int_equal(terminal_enter(&p.terminal, p.output), 0);
	assert_int_equal(terminal_enter(&p.terminal, p.output), 0);
	terminal_leave(&p.terminal, p.output);
	terminal_leave(&p.terminal, p.output);
	assert_true(is_cooked(&p));
	close_pty(&p);
}

static void a_key_comes_alone_and_at_once(void **state)
{
	struct termios modes;
	struct pty p;

	(void)state;
	open_pty(&p, "xterm");
	assert_int_equal(tcgetattr(p.end, &modes), 0);
	modes.c_cc[VMIN] = 5;
	modes.c_cc[VTIME] = 7;
	assert_int_equal(tcsetattr(p.end, TCSANOW, &modes), 0);
	assert_int_equal(terminal_enter(&p.terminal, p.output), 0);
	assert_int_equal(tcgetattr(p.end, &modes), 0);
	assert_int_equal(modes.c_cc[VMIN], 1);
	assert_int_equal(modes.c_cc[VTIME], 0);
	terminal_leave(&p.terminal, p.output);
	close_pty(&p);
}

static void capabilities_of_terminals(void **state)
{
	static const struct {
		const char *name;
		bool ansi;
	} cases[] = { { "xterm", true }, { "dumb", false }, { "", false }, { NULL, false } };
	struct pty p;
	int null = open("/dev/null", O_RDWR);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		open_pty(&p, cases[i].name);
		assert_int_equal(p.terminal.ansi, cases[i].ansi);
		assert_int_equal(p.terminal.keys_fd, p.end);
		close_pty(&p);
	}
	/* Without a terminal there are no keys, and no modes to set. */
	open_pty(&p, "dumb");
	terminal_init(&p.terminal, null, p.end, "dumb");
	assert_int_equal(p.terminal.keys_fd, -1);
	assert_int_equal(terminal_enter(&p.terminal, p.output), 0);
	assert_true(is_cooked(&p));
	terminal_leave(&p.terminal, p.output);
	close_pty(&p);
	close(null);
}

static int enter(void *context)
{
	struct pty *p = context;

	return terminal_enter(&p->terminal, p->output);
}

static void a_terminal_that_is_gone_is_an_error(void **state)
{
	static const struct refused_call refused = { SYS_ioctl, EIO, 0 };
	struct pty p;

	(void)state;
	open_pty(&p, "xterm");
	assert_int_equal(with_refused_call(&refused, enter, &p), -EIO);
	assert_false(p.terminal.entered);
	assert_true(is_cooked(&p));
	close_pty(&p);
}

static void modes_that_cannot_be_set_are_an_error(void **state)
{
	struct pty p;

	(void)state;
	open_pty(&p, "xterm");
	refused_modes = (struct refused_modes){ .error = EIO, .times = 1 };
	assert_int_equal(terminal_enter(&p.terminal, p.output), -EIO);
	assert_false(p.terminal.entered);
	assert_true(is_cooked(&p));
	close_pty(&p);
}

static void an_interrupted_change_of_modes_is_tried_again(void **state)
{
	struct pty p;

	(void)state;
	open_pty(&p, "xterm");
	refused_modes = (struct refused_modes){ .error = EINTR, .times = 2 };
	assert_int_equal(terminal_enter(&p.terminal, p.output), 0);
	assert_int_equal(refused_modes.times, 0);
	assert_false(is_cooked(&p));
	/* An earlier call's errno is no reason to try again. */
	errno = EINTR;
	terminal_leave(&p.terminal, p.output);
	assert_true(is_cooked(&p));
	close_pty(&p);
}

static void size_is(const struct pty *p, size_t columns, size_t lines)
{
	size_t got_columns, got_lines;

	terminal_size(&p->terminal, &got_columns, &got_lines);
	assert_int_equal(got_columns, columns);
	assert_int_equal(got_lines, lines);
}

static void the_size_is_the_terminals_or_the_environments(void **state)
{
	struct winsize size = { .ws_row = 40, .ws_col = 132 };
	struct pty p;

	(void)state;
	open_pty(&p, "xterm");
	unsetenv("COLUMNS");
	unsetenv("LINES");
	size_is(&p, 80, 24);
	setenv("COLUMNS", "1000", 1);
	setenv("LINES", "1000", 1);
	size_is(&p, 1000, 1000);
	setenv("COLUMNS", "1001", 1);
	setenv("LINES", "0", 1);
	size_is(&p, 80, 24);
	setenv("COLUMNS", "1", 1);
	setenv("LINES", "1", 1);
	size_is(&p, 1, 1);
	assert_int_equal(ioctl(p.end, TIOCSWINSZ, &size), 0);
	size_is(&p, 132, 40);
	size = (struct winsize){ .ws_row = 1001, .ws_col = 1001 };
	assert_int_equal(ioctl(p.end, TIOCSWINSZ, &size), 0);
	size_is(&p, 1000, 1000);
	p.terminal.size_fd = -1;
	size_is(&p, 1, 1);
	close_pty(&p);
	unsetenv("COLUMNS");
	unsetenv("LINES");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(processes_as_text),
		CASE(functions_as_text),
		CASE(goroutines_as_text),
		CASE(an_empty_interval_divides_by_nothing),
		CASE(a_terminal_gets_its_sequences),
		CASE(before_the_first_interval),
		CASE(help_takes_the_place_of_rows),
		CASE(a_filter_that_is_typed_is_shown),
		CASE(a_screen_of_one_column_shows_that_column),
		CASE(rows_begin_where_they_fill_the_screen),
		cmocka_unit_test(every_key_of_the_view),
		cmocka_unit_test(help_ends_with_any_key),
		cmocka_unit_test(a_filter_begins_at_the_top),
		cmocka_unit_test(names_of_tables_and_orders),
		cmocka_unit_test(sequences_end_where_they_should),
		cmocka_unit_test(the_terminal_is_taken_and_given_back),
		cmocka_unit_test(a_key_comes_alone_and_at_once),
		cmocka_unit_test(capabilities_of_terminals),
		cmocka_unit_test(a_terminal_that_is_gone_is_an_error),
		cmocka_unit_test(modes_that_cannot_be_set_are_an_error),
		cmocka_unit_test(an_interrupted_change_of_modes_is_tried_again),
		cmocka_unit_test(the_size_is_the_terminals_or_the_environments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
