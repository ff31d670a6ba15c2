/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
	USUAL_COLUMNS = 80,
	USUAL_LINES = 24,
	MAX_COLUMNS = 1000,
	MAX_LINES = 1000,
};

/* Enter: alternate screen (where there is one), cursor hidden, cleared. Leave: undo that. */
static const char ENTER[] = "\033[?1049h\033[?25l\033[H\033[2J";
static const char LEAVE[] = "\033[m\033[?25h\033[?1049l";

void terminal_init(struct terminal *t, int keys_fd, int screen_fd, const char *name)
{
	*t = (struct terminal){ .keys_fd = isatty(keys_fd) ? keys_fd : -1, .size_fd = screen_fd };
	t->ansi = name && *name && strcmp(name, "dumb");
}

static int set_modes(int fd, const struct termios *modes)
{
	int got;

	do {
		got = tcsetattr(fd, TCSANOW, modes);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : 0;
}

int terminal_enter(struct terminal *t, struct output *output)
{
	autocall(buffer_deinit) struct buffer text;
	struct termios modes;
	int err;

	buffer_init(&text, sizeof(ENTER));
	if (t->keys_fd >= 0 && !t->entered) {
		if (tcgetattr(t->keys_fd, &t->saved))
			return -errno;
		modes = t->saved;
		/* ISIG stays set: Ctrl-C and Ctrl-Z keep their meaning. */
		modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		modes.c_cc[VMIN] = 1;
		modes.c_cc[VTIME] = 0;
		err = set_modes(t->keys_fd, &modes);
		if (err)
			return err;
	}
	t->entered = true;
	if (!t->ansi || output_is_pending(output))
		return 0;
	buffer_string(&text, ENTER);
	return text.error ? text.error : output_put(output, &text);
}

void terminal_leave(struct terminal *t, struct output *output)
{
	sigset_t background, before;

	if (!t->entered)
		return;
	t->entered = false;
	if (t->ansi)
		output_last(output, LEAVE);
	if (t->keys_fd < 0)
		return;
	/* SIGTTOU would stop us if we change the modes from the background. */
	sigemptyset(&background);
	sigaddset(&background, SIGTTOU);
	sigprocmask(SIG_BLOCK, &background, &before);
	(void)set_modes(t->keys_fd, &t->saved);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static size_t terminal_number_of(const char *name, size_t usual, size_t most)
{
	const char *text = getenv(name);
	unsigned long number = text ? strtoul(text, NULL, 10) : 0;

	return number > 0 && number <= most ? number : usual;
}

void terminal_size(const struct terminal *t, size_t *ret_columns, size_t *ret_lines)
{
	struct winsize size = { 0 };

	if (ioctl(t->size_fd, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){ 0 };
	*ret_columns = size.ws_col ? MIN((size_t)size.ws_col, MAX_COLUMNS)
				   : terminal_number_of("COLUMNS", USUAL_COLUMNS, MAX_COLUMNS);
	*ret_lines = size.ws_row ? MIN((size_t)size.ws_row, MAX_LINES)
				 : terminal_number_of("LINES", USUAL_LINES, MAX_LINES);
}
