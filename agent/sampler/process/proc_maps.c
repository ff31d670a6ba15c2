/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/sampler/process/proc_text.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/foreign.h"

enum {
	MAX_LINES = 1 << 18, /* four times the default of vm.max_map_count */
	READ_BYTES = 16 * 1024, /* above the longest line: PATH_MAX, each byte possibly escaped */
};

/* The only byte that the kernel escapes here is the newline, as \012. */
static void unescape(char *path)
{
	char *out = path;

	for (const char *in = path; *in; in++) {
		if (!strncmp(in, "\\012", 4)) {
			*out++ = '\n';
			in += 3;
		} else {
			*out++ = *in;
		}
	}
	*out = 0;
}

/* START-END PERMISSIONS OFFSET MAJOR:MINOR INODE [blanks PATH] */
bool proc_maps_parse(char *line, size_t length, struct proc_mapping *ret_mapping)
{
	struct cursor c = cursor_over(line, length);
	struct proc_mapping m = { 0 };
	const char *permissions;
	uint64_t major_number, minor_number;

	m.start = proc_text_hex(&c);
	proc_text_expect(&c, '-');
	m.end = proc_text_hex(&c);
	proc_text_expect(&c, ' ');
	permissions = cursor_bytes(&c, 4);
	proc_text_expect(&c, ' ');
	m.file_off = proc_text_hex(&c);
	proc_text_expect(&c, ' ');
	major_number = proc_text_hex(&c);
	proc_text_expect(&c, ':');
	minor_number = proc_text_hex(&c);
	proc_text_expect(&c, ' ');
	m.inode = proc_text_decimal(&c);
	if (c.bad || m.start >= m.end || memchr(line, 0, length))
		return false;
	proc_text_skip_blanks(&c);
	line[length] = 0;
	unescape(line + cursor_offset(&c));
	m.path = line + cursor_offset(&c);
	m.executable = permissions[2] == 'x';
	m.device = makedev((unsigned int)major_number, (unsigned int)minor_number);
	*ret_mapping = m;
	return true;
}

/* A piece of the file: whole lines, then the beginning of one. */
struct line_reader {
	int fd;
	size_t used; /* bytes in `text` */
	bool skipping; /* inside a line that is longer than `text` */
	unsigned int lines;
	proc_maps_fn *fn;
	void *context;
	char text[READ_BYTES];
};

static int use_line(struct line_reader *r, char *line, size_t length)
{
	struct proc_mapping mapping;

	if (++r->lines > MAX_LINES)
		return -E2BIG;
	if (r->skipping) {
		r->skipping = false;
		return 0;
	}
	if (!proc_maps_parse(line, length, &mapping))
		return 0;
	return r->fn(r->context, &mapping);
}

/* Processes the whole lines in the buffer and moves what is left to its front. */
static int use_lines(struct line_reader *r)
{
	char *at = r->text, *end = r->text + r->used;
	char *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		int err = use_line(r, at, (size_t)(newline - at));

		if (err)
			return err;
		at = newline + 1;
	}
	r->used = (size_t)(end - at);
	if (r->used == sizeof(r->text)) {
		r->skipping = true;
		r->used = 0;
	}
	memmove(r->text, at, r->used);
	return 0;
}

int proc_maps_read(int task_fd, proc_maps_fn *fn, void *context)
{
	autoclose int fd = -1;
	struct line_reader r;
	int err = foreign_open(
		&(struct foreign_path){ .place = FOREIGN_TEXT, .dir_fd = task_fd, .name = "maps" },
		&fd);

	if (err)
		return err;
	r.fd = fd;
	r.used = 0;
	r.skipping = false;
	r.lines = 0;
	r.fn = fn;
	r.context = context;
	for (;;) {
		ssize_t got = read(fd, r.text + r.used, sizeof(r.text) - r.used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		r.used += (size_t)got;
		err = use_lines(&r);
		if (err)
			return err;
	}
}
