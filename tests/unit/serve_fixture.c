/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/serve_fixture.h"

static const uint64_t HUNG_NS = UINT64_C(60000000000);

/* ---- handlers ------------------------------------------------------------------------------- */

static int metrics(void *context, struct buffer *out)
{
	struct serve_fixture *f = context;

	f->metrics_made++;
	buffer_string(out, "figures\n");
	for (size_t i = 0; i < f->metrics_bytes; i++)
		buffer_append(out, "x", 1);
	return f->metrics_error;
}

static int status(void *context, struct buffer *out)
{
	(void)context;
	return buffer_string(out, "{}\n");
}

static const char *not_ready(void *context)
{
	const struct serve_fixture *f = context;

	return f->not_ready ? "not sampling\n" : NULL;
}

static int profiles(
	void *context, int64_t from_ns, int64_t to_ns, unsigned int slices, struct buffer *out)
{
	struct serve_fixture *f = context;

	f->slices = slices;
	f->from_ns = from_ns;
	f->to_ns = to_ns;
	return buffer_string(out, "[]\n");
}

static int latency(void *context, int64_t from_ms, int64_t to_ms, struct buffer *out)
{
	struct serve_fixture *f = context;

	f->from_ms = from_ms;
	f->to_ms = to_ms;
	return buffer_string(out, "{\"windows\":[]}\n");
}

static int profile_file(void *context, const char *path, int *ret_fd)
{
	struct serve_fixture *f = context;

	snprintf(f->path, sizeof(f->path), "%s", path);
	if (f->file_error)
		return f->file_error;
	*ret_fd = memfd_create("profile", MFD_CLOEXEC);
	assert_true(*ret_fd >= 0);
	assert_int_equal(write(*ret_fd, "stored bytes", 12), 12);
	return 0;
}

void serve_send_reply(void *context)
{
	struct serve_fixture *f = context;

	serve_reply_send(take(f->reply), f->send_status ? f->send_status : 200,
		"application/octet-stream", "a profile", 9);
}

static void send_merge(void *context)
{
	struct serve_fixture *f = context;
	struct serve_reply *reply = f->reply;

	f->reply = NULL;
	if (f->merge_fd >= 0)
		serve_reply_send_file(reply, "application/octet-stream", f->merge_fd);
	else
		serve_reply_refuse(reply, 413, "too large\n");
}

static int merge_begin(void *context, struct serve_reply *reply, const struct serve_merge *wanted)
{
	struct serve_fixture *f = context;
	int timer;

	f->merge = *wanted;
	snprintf(f->merge_group, sizeof(f->merge_group), "%s", wanted->group ?: "(all)");
	snprintf(
		f->merge_container, sizeof(f->merge_container), "%s", wanted->container ?: "(all)");
	snprintf(f->merge_comm, sizeof(f->merge_comm), "%s", wanted->comm ?: "(all)");
	if (f->merge_error)
		return f->merge_error;
	f->reply = reply;
	return loop_timer(f->loop, 1000000, 0, send_merge, f, &timer);
}

static int profile_begin(void *context, struct serve_reply *reply,
	const struct serve_profile_wish *wish, struct buffer *why)
{
	struct serve_fixture *f = context;
	int timer;

	if (f->begin_error == -ESRCH)
		(void)buffer_string(why, "no such process\n");

	f->seconds = wish->seconds;
	f->pid = wish->pid;
	f->hz = wish->hz;
	if (f->begin_error)
		return f->begin_error;
	if (f->one_place && f->reply)
		return -EAGAIN;
	f->reply = reply;
	if (f->send_soon)
		assert_int_equal(loop_timer(f->loop, 0, 0, serve_send_reply, f, &timer), 0);
	if (f->stop_at_begin)
		loop_stop(f->loop);
	return 0;
}

static void profile_cancel(void *context, struct serve_reply *reply)
{
	struct serve_fixture *f = context;

	f->cancelled = reply;
	f->reply = NULL;
	if (f->stop_at_cancel)
		loop_stop(f->loop);
}

static int reload(void *context, struct buffer *out)
{
	struct serve_fixture *f = context;

	f->reloads++;
	buffer_string(out, f->reload_error ? "line 3: no such setting\n" : "reloaded\n");
	return f->reload_error;
}

/* ---- server and client ---------------------------------------------------------------------- */

void serve_start(struct serve_fixture *f, const char *address, const char *token)
{
	struct serve_options options = { .address = address, .token = token, .limits = f->limits };

	options.loop = f->loop;
	options.handlers = (struct serve_handlers){
		.metrics = metrics,
		.metrics_type = "text/x-figures",
		.status = status,
		.not_ready = not_ready,
		.profiles = profiles,
		.latency = latency,
		.profile_file = profile_file,
		.profile_begin = profile_begin,
		.merge_begin = merge_begin,
		.profile_cancel = profile_cancel,
		.reload = reload,
		.context = f,
	};
	assert_int_equal(serve_create(&options, &f->serve), 0);
}

int serve_setup(void **state)
{
	struct serve_fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(loop_create(&f->loop), 0);
	*state = f;
	return 0;
}

int serve_setup_started(void **state)
{
	serve_setup(state);
	serve_start(*state, "127.0.0.1:0", NULL);
	return 0;
}

int serve_teardown(void **state)
{
	struct serve_fixture *f = *state;

	serve_destroy(f->serve);
	loop_destroy(f->loop);
	free(f);
	return 0;
}

int serve_socket(const struct serve_fixture *f, int domain)
{
	uid_t before = geteuid();
	int fd;

	if (f->client_uid)
		assert_int_equal(seteuid(f->client_uid), 0);
	fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (f->client_uid)
		assert_int_equal(seteuid(before), 0);
	assert_true(fd >= 0);
	return fd;
}

int serve_connect(const struct serve_fixture *f)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)serve_port(f->serve)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = serve_socket(f, AF_INET);

	assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void on_hung(void *context)
{
	(void)context;
	fail_msg("the server does not answer");
}

void serve_run(struct serve_fixture *f)
{
	int timer;

	assert_int_equal(loop_timer(f->loop, HUNG_NS, 0, on_hung, f, &timer), 0);
	assert_int_equal(loop_run(f->loop), 0);
	loop_cancel(f->loop, timer);
}

static void on_answer(void *context, int fd, uint32_t events)
{
	struct serve_fixture *f = context;
	ssize_t got = read(fd, f->answer + f->answer_size, sizeof(f->answer) - 1 - f->answer_size);

	(void)events;
	if (got > 0)
		f->answer_size += (size_t)got;
	else
		loop_stop(f->loop);
	f->answer[f->answer_size] = 0;
}

/* Sends REQUEST and reads until the server closes. Returns the status, 0 for no answer. */
int serve_ask_on(struct serve_fixture *f, int fd, const char *request, size_t size)
{
	f->answer_size = 0;
	f->answer[0] = 0;
	assert_true(!size || write(fd, request, size) == (ssize_t)size);
	assert_int_equal(loop_add(f->loop, fd, EPOLLIN, on_answer, f), 0);
	serve_run(f);
	loop_remove(f->loop, fd);
	return f->answer_size > 12 ? (int)strtol(f->answer + 9, NULL, 10) : 0;
}

int serve_ask_raw(struct serve_fixture *f, const char *request)
{
	autoclose int fd = serve_connect(f);

	return serve_ask_on(f, fd, request, strlen(request));
}

int serve_ask_with(struct serve_fixture *f, const char *method_and_path, const char *headers)
{
	char request[16384];

	snprintf(request, sizeof(request),
		"%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", method_and_path,
		headers);
	return serve_ask_raw(f, request);
}

int serve_ask(struct serve_fixture *f, const char *method_and_path)
{
	return serve_ask_with(f, method_and_path, "");
}

const char *serve_body(const struct serve_fixture *f)
{
	const char *end = strstr(f->answer, "\r\n\r\n");

	assert_non_null(end);
	return end + 4;
}

bool serve_says(const struct serve_fixture *f, const char *text)
{
	return strcasestr(f->answer, text) != NULL;
}

int serve_connect_unix(const struct sockaddr_un *un)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)un, sizeof(*un)), 0);
	return fd;
}
