/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches debug files from debuginfod servers, one blocking request at a time. A server failure is
 * reported once: after it the servers are paused for a while.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/commands/symbolize.h"
#include "base/clock.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/debuginfod/debuginfod.h"

enum { PROGRESS_MS = 500 };

static void show_progress(const struct debuginfod_request *request, const char *name)
{
	struct stat st;

	if (isatty(STDERR_FILENO) && !fstat(request->fd, &st))
		fprintf(stderr, "\rdebug file of %s from debuginfod: %.1f MB \033[K", name,
			(double)st.st_size / 1e6);
}

static void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static int symbolize_debuginfod_wait_for(
	struct debuginfod *d, struct debuginfod_request *request, const char *name)
{
	int fd, err;

	for (;;) {
		struct pollfd waited = { .fd = request->child.result_fd, .events = POLLIN };

		if (poll(&waited, 1, PROGRESS_MS) <= 0)
			show_progress(request, name);
		err = debuginfod_collect(d, request, clock_monotonic_ns(), &fd);
		if (err != -EAGAIN)
			break;
	}
	clear_progress();
	return err ? err : fd;
}

/* Returns the file's descriptor, or -1. */
static int fetch(struct debuginfod *d, const struct build_id *id, const char *name)
{
	struct debuginfod_request request;
	int fd, err;

	if (debuginfod_is_paused(d, clock_monotonic_ns()))
		return -1;
	err = debuginfod_ask(d, id, &request);
	fd = err ? err : symbolize_debuginfod_wait_for(d, &request, name);
	if (fd < 0 && fd != -ENOENT)
		fprintf(stderr, "fathom symbolize: no debug file of %s from debuginfod: %s\n", name,
			debuginfod_explain(fd));
	return fd < 0 ? -1 : fd;
}

static void symbolize_debuginfod_add(
	struct debug_files *debug_files, int fd, enum debug_file_role role)
{
	struct stat st;

	debug_files->items[debug_files->count++] = (struct debug_file){
		.fd = fd,
		.role = role,
		.bytes = fstat(fd, &st) ? 0 : (uint64_t)st.st_size,
	};
}

bool symbolize_fetch(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct debug_files *debug_files)
{
	int fd = fetch(indexes->debuginfod, id, name);

	if (fd >= 0)
		symbolize_debuginfod_add(debug_files, fd, DEBUG_FILE_SEPARATE);
	return fd >= 0;
}

void symbolize_fetch_alternate(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct debug_files *debug_files)
{
	struct debuginfod *d = indexes->debuginfod;
	const char *directories = indexes->debug_directories ? indexes->debug_directories : "";
	uint64_t bytes;
	int fd = -1;

	if (id->size <= 1)
		return;
	if (debug_search_open_by_id(directories, id, &bytes, &fd) && !debuginfod_is_absent(d, id))
		fd = fetch(d, id, name);
	if (fd >= 0)
		symbolize_debuginfod_add(debug_files, fd, DEBUG_FILE_SUPPLEMENTARY);
}
