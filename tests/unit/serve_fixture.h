/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server with handlers that remember what they were asked, and clients of it: both turn on the
 * same loop, so that a test waits for what happens and never for a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "agent/loop/loop.h"
#include "agent/server/serve/serve.h"

enum { SERVE_ANSWER_BYTES = 1 << 20 };

struct serve_fixture {
	struct loop *loop;
	struct serve *serve;
	char answer[SERVE_ANSWER_BYTES]; /* of the last ask() */
	size_t answer_size;
	/* what the handlers saw and say */
	struct serve_reply *reply;
	struct serve_reply *cancelled;
	unsigned int seconds, reloads;
	unsigned int send_status; /* 0: 200 */
	uint32_t pid;
	int begin_error, reload_error, file_error, metrics_error;
	int64_t from_ns, to_ns;
	char path[256];
	size_t metrics_bytes; /* besides the word */
	struct serve_limits limits;
	bool not_ready, send_soon, stop_at_begin, stop_at_cancel;
	bool one_place; /* -EAGAIN while a profile is under way */
	/* a client that writes piece by piece */
	const char *piece;
	size_t piece_size, to_send;
	int slow_fd;
};

/* cmocka's setup and teardown; *STATE is a struct serve_fixture. */
int serve_setup(void **state);
int serve_setup_started(void **state); /* on a port of loopback */
int serve_teardown(void **state);
void serve_start(struct serve_fixture *f, const char *address, const char *token);

/* Non-blocking sockets. */
int serve_connect(const struct serve_fixture *f);
int serve_connect_unix(const struct sockaddr_un *un);
/* Runs the loop until somebody stops it. */
void serve_run(struct serve_fixture *f);
/* Sends REQUEST and reads until the server closes. Returns the status, 0 for no answer. */
int serve_ask_on(struct serve_fixture *f, int fd, const char *request, size_t size);
int serve_ask_raw(struct serve_fixture *f, const char *request);
/* METHOD_AND_PATH like `GET /status`; each of HEADERS ends with CR LF. */
int serve_ask_with(struct serve_fixture *f, const char *method_and_path, const char *headers);
int serve_ask(struct serve_fixture *f, const char *method_and_path);
/* A timer's: answers the profile that is under way. CONTEXT is the fixture. */
void serve_send_reply(void *context);
/* Of the last answer. */
const char *serve_body(const struct serve_fixture *f);
bool serve_says(const struct serve_fixture *f, const char *text);
