/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/merge/merge.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/server/merge/merge_wire.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/sandbox/child.h"

enum {
	ARGUMENT_BYTES = 24,
	FDS = 3,
};

/* A child that does not end is killed: it has 60 s of CPU time, and little priority. */
static const uint64_t LONGEST_NS = UINT64_C(120000000000);

struct merge {
	struct loop *loop;
	pid_t pid;
	int pid_fd; /* -1 = none; readable once the child has ended */
	int output_fd;
	int timer; /* -1 = none */
	void (*done)(void *context, const struct merge_result *result);
	void *context;
};

static void merge_free(struct merge *m)
{
	loop_cancel(m->loop, m->timer);
	if (m->pid_fd >= 0) {
		loop_remove(m->loop, m->pid_fd);
		close(m->pid_fd);
	}
	if (m->output_fd >= 0)
		close(m->output_fd);
	free(m);
}

static uint64_t merge_cpu_ns(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * UINT64_C(1000000000) +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * UINT64_C(1000);
}

/* Out of CPU time is too large as well. */
static int merge_error(int status)
{
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL ? -E2BIG : -EIO;
	if (WEXITSTATUS(status) == MERGE_WIRE_DONE || WEXITSTATUS(status) > MERGE_WIRE_UNREAD)
		return 0;
	if (WEXITSTATUS(status) == MERGE_WIRE_NOTHING)
		return -ENOENT;
	return WEXITSTATUS(status) == MERGE_WIRE_TOO_LARGE ? -E2BIG : -EIO;
}

static void merge_reap(struct merge *m, int *ret_status, struct rusage *ret_usage)
{
	while (wait4(m->pid, ret_status, 0, ret_usage) < 0 && errno == EINTR)
		;
	m->pid = -1;
}

static void on_child_ended(void *context, int fd, uint32_t events)
{
	struct merge *m = context;
	struct rusage usage = { 0 };
	struct merge_result result = { .fd = -1 };
	int status = 0;

	(void)fd;
	(void)events;
	merge_reap(m, &status, &usage);
	result.err = merge_error(status);
	result.cpu_ns = merge_cpu_ns(&usage);
	if (!result.err) {
		result.fd = take_fd(&m->output_fd);
		result.unread = (unsigned int)MAX(WEXITSTATUS(status) - MERGE_WIRE_UNREAD, 0);
	}
	m->done(m->context, &result);
	merge_free(m);
}

static void on_merge_late(void *context)
{
	struct merge *m = context;

	m->timer = -1;
	kill(m->pid, SIGKILL);
}

void merge_cancel(struct merge *m)
{
	struct rusage usage;
	int status;

	if (!m)
		return;
	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		merge_reap(m, &status, &usage);
	}
	merge_free(m);
}

int merge_add_file(struct buffer *files, const struct stored_merge_source *file)
{
	return buffer_printf(files, MERGE_WIRE_LINE, file->minutes, file->all_minutes, file->minute,
		file->slice_ms, *file->group ? file->group : MERGE_WIRE_NO_GROUP, file->path);
}

static int merge_make_job(const struct buffer *files, int *ret_fd)
{
	autoclose int fd = memfd_create("fathom-merge-job", MFD_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = io_write_all(fd, files->bytes, files->size);
	if (!err && lseek(fd, 0, SEEK_SET) < 0)
		err = -errno;
	if (!err)
		*ret_fd = take_fd(&fd);
	return err;
}

static int merge_spawn(const struct merge_options *options, int job_fd, struct merge *m)
{
	static char *const no_environment[] = { NULL };
	autocall(child_fds_close) struct child_fds fds = { .expected = FDS };
	autofree char *comm = strdup(options->comm ? options->comm : "");
	autofree char *container = strdup(options->container ? options->container : "");
	char program[] = "fathom", command[sizeof(MERGE_WIRE_COMMAND)], parent[ARGUMENT_BYTES];
	autofree char *group = strdup(options->group ? options->group : "");
	char form[] = { (char)('0' + options->form), 0 };
	char *argv[] = { program, command, parent, form, comm, container, group, NULL };
	int err;

	if (!comm || !container || !group)
		return -ENOMEM;
	memcpy(command, MERGE_WIRE_COMMAND, sizeof(command));
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	err = child_fds_add(&fds, options->directory_fd) ?: child_fds_add(&fds, job_fd) ?:
				child_fds_add(&fds, m->output_fd);
	return err ? err : child_spawn(argv, no_environment, &fds, &m->pid);
}

static int merge_watch(struct merge *m)
{
	int fd = (int)syscall(SYS_pidfd_open, m->pid, 0), err;

	if (fd < 0)
		return -errno;
	err = loop_add(m->loop, fd, EPOLLIN, on_child_ended, m);
	if (err) {
		close(fd);
		return err;
	}
	m->pid_fd = fd;
	return loop_timer(m->loop, LONGEST_NS, 0, on_merge_late, m, &m->timer);
}

int merge_start(const struct merge_options *options, struct merge **ret_merge)
{
	struct merge *m = calloc(1, sizeof(*m));
	autoclose int job_fd = -1;
	int err;

	if (!m) {
		if (options->output_fd)
			close(options->output_fd);
		return -ENOMEM;
	}
	*m = (struct merge){
		.loop = options->loop,
		.pid = -1,
		.pid_fd = -1,
		.output_fd = options->output_fd ? options->output_fd
						: memfd_create("fathom-merge", MFD_CLOEXEC),
		.timer = -1,
		.done = options->done,
		.context = options->context,
	};
	err = m->output_fd < 0 ? -errno : merge_make_job(options->files, &job_fd);
	if (!err)
		err = merge_spawn(options, job_fd, m);
	if (!err)
		err = merge_watch(m);
	if (err) {
		merge_cancel(m);
		return err;
	}
	*ret_merge = m;
	return 0;
}
