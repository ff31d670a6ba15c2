/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/seam/process_origin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/io.h"

enum {
	STAT_BYTES = 1024,
	COMMAND_LINE_BYTES = 4 << 10,
	CGROUP_LINES_BYTES = 16 << 10,
	ENVIRONMENT_BYTES = 64 << 10,
	STAT_START_FIELD = 22, /* proc(5), counted from 1; the state is field 3 */
};

void process_origin_deinit(struct process_origin *origin)
{
	buffer_deinit(&origin->command_line);
	buffer_deinit(&origin->cgroup);
	buffer_deinit(&origin->environment);
}

/* Reads a file of /proc/PID into OUT, cut at its limit; empties OUT if it cannot be read. */
static void read_proc(const struct process_facts *p, const char *file, struct buffer *out)
{
	char path[48];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", p->pid, file);
	/* Some are read from the memory of the process, which may wait. */
	if (foreign_open(
		    &(struct foreign_path){
			    .place = FOREIGN_TEXT, .dir_fd = AT_FDCWD, .name = path },
		    &fd))
		return;
	if (io_read_all(fd, out) && out->error != -E2BIG)
		out->size = 0;
	out->error = 0;
}

/* False if the process is gone, or its pid was reused. */
static bool read_parent(const struct process_facts *p, uint32_t *ret_parent)
{
	autocall(buffer_deinit) struct buffer text;
	const char *at;
	char *end;
	uint64_t value = 0;

	buffer_init(&text, STAT_BYTES);
	read_proc(p, "stat", &text);
	text.limit++;
	if (!text.size || buffer_append(&text, "", 1))
		return false;
	/* The name in parentheses may contain anything. */
	at = strrchr((const char *)text.bytes, ')');
	if (!at || strlen(at) < 4)
		return false;
	at += 3;
	for (int field = 4; field <= STAT_START_FIELD; field++, at = end) {
		value = strtoull(at, &end, 10);
		if (end == at)
			return false;
		if (field == 4)
			*ret_parent = (uint32_t)value;
	}
	return !p->start_ticks || value == p->start_ticks;
}

int process_origin_read(
	const struct process_facts *p, bool with_environment, struct process_origin *ret_origin)
{
	buffer_init(&ret_origin->command_line, COMMAND_LINE_BYTES);
	buffer_init(&ret_origin->cgroup, CGROUP_LINES_BYTES);
	buffer_init(&ret_origin->environment, ENVIRONMENT_BYTES);
	if (p->ended || !read_parent(p, &ret_origin->parent))
		return -ESRCH;
	read_proc(p, "cmdline", &ret_origin->command_line);
	read_proc(p, "cgroup", &ret_origin->cgroup);
	if (with_environment)
		read_proc(p, "environ", &ret_origin->environment);
	return 0;
}
