/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server whose handlers record their calls, and its clients. Both run on one loop, so that a test
 * waits for events and never for a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "agent/loop/loop.h"
#include "agent/server/serve/serve.h"

enum { SERVE_ANSWER_BYTES = 2 << 20 };

struct serve_fixture {
	struct loop *loop;
	struct serve *serve;
	char answer[SERVE_ANSWER_BYTES]; /* the last answer */
	size_t answer_size;
	/* what the handlers record and return */
	struct serve_reply *reply;
	struct serve_reply *cancelled;
	unsigned int seconds, reloads;
	unsigned int send_status; /* 0 = 200 */
	uint32_t pid;
	unsigned int hz;
	int begin_error, reload_error, file_error, metrics_error;
	int64_t from_ns, to_ns; /* of the list of profiles */
	unsigned int slices;
	int64_t from_ms, to_ms; /* of function latency */
	struct serve_merge merge; /* the last that was asked for; its texts are below */
	char merge_group[32], merge_container[32], merge_comm[32];
	int merge_error;
	int merge_fd; /* what is sent; -1 = refused with 413 */
	char path[256];
	size_t metrics_bytes; /* padding after the first line */
	unsigned int metrics_made; /* how often */
	struct serve_limits limits;
	uid_t client_uid; /* owner of the sockets of serve_connect(); 0 = this user */
	bool not_ready, send_soon, stop_at_begin, stop_at_cancel;
	bool one_place; /* return -EAGAIN during another profile */
	/* a client that writes piece by piece */
	const char *piece;
	size_t piece_size, to_send;
	int slow_fd;
};

/* cmocka's setup and teardown; *STATE is a struct serve_fixture. */
int serve_setup(void **state);
int serve_setup_started(void **state); /* listens on a loopback port */
int serve_teardown(void **state);
void serve_start(struct serve_fixture *f, const char *address, const char *token);

/* A TCP socket that belongs to the client's user. */
int serve_socket(const struct serve_fixture *f, int domain);
/* Return non-blocking sockets. */
int serve_connect(const struct serve_fixture *f);
int serve_connect_unix(const struct sockaddr_un *un);
/* Runs the loop until it is stopped. */
void serve_run(struct serve_fixture *f);
/* Sends REQUEST and reads until the server closes. Returns the status, 0 without an answer. */
int serve_ask_on(struct serve_fixture *f, int fd, const char *request, size_t size);
int serve_ask_raw(struct serve_fixture *f, const char *request);
/* METHOD_AND_PATH as in `GET /status`; each of HEADERS ends with CR LF. */
int serve_ask_with(struct serve_fixture *f, const char *method_and_path, const char *headers);
int serve_ask(struct serve_fixture *f, const char *method_and_path);
/* A loop_timer_fn that answers the pending profile request. CONTEXT is the fixture. */
void serve_send_reply(void *context);
/* Return the body of the last answer, and whether the answer contains TEXT (ignoring case). */
const char *serve_body(const struct serve_fixture *f);
bool serve_says(const struct serve_fixture *f, const char *text);
