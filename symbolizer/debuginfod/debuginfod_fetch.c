/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/debuginfod/debuginfod_fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/sandbox/child.h"
#include "symbolizer/debuginfod/debuginfod_wire.h"

enum { NUMBER_BYTES = 24, MAX_ENVIRONMENT = 24 };

static const char blanks[] = " ,\t\r\n";

/* ---- lists of URLs -------------------------------------------------------------------------- */

static bool is_url(const char *text)
{
	return !strncasecmp(text, "http://", 7) || !strncasecmp(text, "https://", 8);
}

bool debuginfod_urls_are_valid(const char *text)
{
	for (const char *at = text + strspn(text, blanks); *at; at += strspn(at, blanks)) {
		if (!is_url(at) && strncmp(at, "ima:", 4) != 0)
			return false;
		at += strcspn(at, blanks);
	}
	return true;
}

const char *debuginfod_next_url(const char **at, size_t *ret_length)
{
	for (;;) {
		const char *url = *at + strspn(*at, blanks);
		size_t length = strcspn(url, blanks);

		*at = url + length;
		if (!length)
			return NULL;
		while (length && url[length - 1] == '/')
			length--;
		*ret_length = length;
		if (is_url(url))
			return url;
	}
}

/* ---- the child ------------------------------------------------------------------------------ */

/* Variables read by the child's libraries; it gets no others, which may hold secrets. */
static const char *const passed[] = {
	"http_proxy",
	"https_proxy",
	"HTTPS_PROXY",
	"all_proxy",
	"ALL_PROXY",
	"no_proxy",
	"NO_PROXY",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"OPENSSL_CONF",
	"RES_OPTIONS",
	"LOCALDOMAIN",
	"LD_LIBRARY_PATH",
	DEBUGINFOD_TIMEOUT,
	DEBUGINFOD_MAXTIME,
	DEBUGINFOD_MAXSIZE,
};

struct environment {
	char *items[MAX_ENVIRONMENT]; /* owned; the last is NULL */
	size_t count;
};
_Static_assert(ARRAY_SIZE(passed) + 2 <= MAX_ENVIRONMENT, "room for all");

static void environment_deinit(struct environment *e)
{
	while (e->count)
		free(e->items[--e->count]);
}

static int environment_add(struct environment *e, const char *name, const char *value)
{
	char *text;

	if (!value)
		return 0;
	if (asprintf(&text, "%s=%s", name, value) < 0)
		return -ENOMEM;
	e->items[e->count++] = text;
	return 0;
}

static int fill_environment(struct environment *e, const char *urls)
{
	int err = environment_add(e, DEBUGINFOD_URLS, urls);

	for (size_t i = 0; i < ARRAY_SIZE(passed) && !err; i++)
		err = environment_add(e, passed[i], getenv(passed[i]));
	return err;
}

static int debuginfod_fetch_spawn(
	const struct debuginfod_question *q, const struct child_fds *fds, pid_t *ret_pid)
{
	autocall(environment_deinit) struct environment environment = { .count = 0 };
	char program[] = "fathom", command[sizeof(SANDBOX_FETCH_COMMAND)];
	char parent[NUMBER_BYTES], limit[NUMBER_BYTES], id[MODULE_ID_TEXT_BYTES];
	char *argv[DEBUGINFOD_ARGUMENTS + 1] = { program, command, parent, limit, id };
	int err = fill_environment(&environment, q->urls);

	if (err)
		return err;
	memcpy(command, SANDBOX_FETCH_COMMAND, sizeof(command));
	snprintf(parent, sizeof(parent), "%d", (int)getpid());
	snprintf(limit, sizeof(limit), "%" PRIu64, q->limit_bytes);
	build_id_format(q->id, id, sizeof(id));
	return child_spawn(argv, environment.items, fds, ret_pid);
}

int debuginfod_fetch_start(const struct debuginfod_question *q, struct sandbox *ret_child)
{
	autocall(child_fds_close) struct child_fds fds = { .expected = 3 };
	autoclose int read_end = -1, write_end = -1;
	pid_t pid;
	int err = child_pipe(&read_end, &write_end);

	/* The child has no input; the output stands in for the sandbox's ELF file descriptor. */
	if (!err)
		err = child_fds_add(&fds, q->output_fd);
	if (!err)
		err = child_fds_add(&fds, q->output_fd);
	if (!err)
		err = child_fds_add(&fds, write_end);
	if (!err)
		err = debuginfod_fetch_spawn(q, &fds, &pid);
	if (err)
		return err;
	*ret_child = (struct sandbox){ .pid = pid, .result_fd = take_fd(&read_end) };
	return 0;
}

void debuginfod_fetch_finish(struct sandbox *child, struct debuginfod_answer *ret_answer)
{
	struct sandbox_result result;

	(void)sandbox_finish(child, &result);
	*ret_answer = (struct debuginfod_answer){
		.error = result.error,
		.http_status = result.broken_units & DEBUGINFOD_STATUS_MASK,
		.answered = result.broken_units & DEBUGINFOD_ANSWERED,
	};
}
