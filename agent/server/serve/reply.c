/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/serve/page_file.h"
#include "agent/server/serve/serve_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { PAGE_LIMIT_BYTES = 4 << 20 };

static const char TEXT[] = "text/plain; charset=utf-8";
static const char HTML[] = "text/html; charset=utf-8";
static const char NOTHING_ALLOWED[] = "default-src 'none'; frame-ancestors 'none'";

static void add_common(struct MHD_Response *response, const char *type, const char *policy)
{
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(response, "Content-Security-Policy", policy);
}

/* Takes ownership of RESPONSE; NULL = out of memory. MHD_NO closes the connection. */
static enum MHD_Result queue(
	struct serve_reply *r, unsigned int status, struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	connections_set_deadline(r->connection, r->serve->limits.sending_ns);
	result = MHD_queue_response(r->mhd, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct MHD_Response *response_of(const char *type, const char *policy, const void *bytes,
	size_t size, enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, mode);

	if (response)
		add_common(response, type, policy);
	return response;
}

static struct MHD_Response *text_response(const char *text)
{
	return response_of(TEXT, NOTHING_ALLOWED, text, strlen(text), MHD_RESPMEM_MUST_COPY);
}

enum MHD_Result reply_text(struct serve_reply *r, unsigned int status, const char *text)
{
	return queue(r, status, text_response(text));
}

/* Moves BODY's bytes into the response, or frees them. */
static struct MHD_Response *response_taking(
	const char *type, const char *policy, struct buffer *body)
{
	struct MHD_Response *response;

	if (!body->bytes)
		return response_of(type, policy, "", 0, MHD_RESPMEM_PERSISTENT);
	response = response_of(type, policy, body->bytes, body->size, MHD_RESPMEM_MUST_FREE);
	if (response)
		body->bytes = NULL;
	buffer_deinit(body);
	return response;
}

enum MHD_Result reply_buffer(
	struct serve_reply *r, unsigned int status, const char *type, struct buffer *body)
{
	return queue(r, status, response_taking(type, NOTHING_ALLOWED, body));
}

enum MHD_Result reply_sharing(struct serve_reply *r, const char *type, struct buffer *body,
	struct shared_replies *replies)
{
	struct MHD_Response *response;

	if (!shared_reply_is_worth_it(body))
		return reply_buffer(r, MHD_HTTP_OK, type, body);
	response = shared_reply_make(replies, body);
	if (response)
		add_common(response, type, NOTHING_ALLOWED);
	buffer_deinit(body);
	return queue(r, MHD_HTTP_OK, response);
}

bool reply_shared(
	struct serve_reply *r, const struct shared_replies *replies, enum MHD_Result *ret_result)
{
	struct MHD_Response *response = shared_reply_get(replies);

	if (!response)
		return false;
	connections_set_deadline(r->connection, r->serve->limits.sending_ns);
	*ret_result = MHD_queue_response(r->mhd, MHD_HTTP_OK, response);
	return true;
}

/* Takes FD; NULL if it cannot be read. */
static struct MHD_Response *response_of_file(const char *type, int fd)
{
	struct MHD_Response *response = NULL;
	struct stat st;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		response = MHD_create_response_from_fd64((uint64_t)st.st_size, fd);
	if (response)
		add_common(response, type, NOTHING_ALLOWED);
	else
		close(fd);
	return response;
}

enum MHD_Result reply_file(struct serve_reply *r, const char *type, int fd)
{
	struct MHD_Response *response = response_of_file(type, fd);

	if (!response)
		return reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "it cannot be read\n");
	return queue(r, MHD_HTTP_OK, response);
}

enum MHD_Result reply_unauthorized(struct serve_reply *r)
{
	struct MHD_Response *response =
		text_response("only root and the agent's own user may read this from this machine "
			      "without the token: send `Authorization: Bearer TOKEN`, or TOKEN as "
			      "the password\n");

	if (response) {
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"fathom\"");
		MHD_add_response_header(response, "WWW-Authenticate", "Basic realm=\"fathom\"");
	}
	return queue(r, MHD_HTTP_UNAUTHORIZED, response);
}

enum MHD_Result reply_wrong_method(struct serve_reply *r, const char *allowed)
{
	struct MHD_Response *response = text_response("method not allowed\n");

	if (response)
		MHD_add_response_header(response, "Allow", allowed);
	return queue(r, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

/* ---- the page ------------------------------------------------------------------------------- */

static enum MHD_Result reply_own_page(struct serve_reply *r)
{
	char policy[PAGE_POLICY_BYTES];
	autocall(buffer_deinit) struct buffer body;

	buffer_init(&body, PAGE_LIMIT_BYTES);
	if (page_of_agent(&body, policy))
		return reply_text(
			r, MHD_HTTP_INTERNAL_SERVER_ERROR, "the page cannot be created\n");
	return queue(r, MHD_HTTP_OK, response_taking(HTML, policy, &body));
}

enum MHD_Result reply_page(struct serve_reply *r)
{
	const struct serve_page *page = &r->serve->page;

	if (!page->bytes)
		return reply_own_page(r);
	return queue(r, MHD_HTTP_OK,
		response_of(HTML, page->policy, page->bytes, page->size, MHD_RESPMEM_PERSISTENT));
}

/* ---- answers that come later ---------------------------------------------------------------- */

static void on_hangup(void *context, int fd, uint32_t events)
{
	struct serve_reply *r = context;
	struct serve *s = r->serve;

	if (events & (EPOLLHUP | EPOLLERR)) {
		reply_cancel(r);
		server_run(s);
		return;
	}
	r->connection->half_closed_ns = clock_monotonic_ns();
	loop_set_events(s->loop, fd, 0);
}

void reply_hold(struct serve_reply *r)
{
	r->connection->held = r;
	r->connection->half_closed_ns = 0;
	connections_set_deadline(r->connection, 0);
	MHD_suspend_connection(r->mhd);
	/* The library does not watch a suspended client. If loop_add() fails, the answer is merely
	 * sent to nobody. */
	(void)loop_add(r->serve->loop, r->connection->fd, EPOLLRDHUP, on_hangup, r);
}

/* Takes ownership of RESPONSE. */
static void release(struct serve_reply *r, unsigned int status, struct MHD_Response *response)
{
	r->connection->held = NULL;
	loop_remove(r->serve->loop, r->connection->fd);
	/* The library calls the request handler again for a request resumed without an answer. */
	r->failed = queue(r, status, response) != MHD_YES;
	MHD_resume_connection(r->mhd);
}

void reply_cancel(struct serve_reply *r)
{
	const struct serve_handlers *h = &r->serve->handlers;

	if (h->profile_cancel)
		h->profile_cancel(h->context, r);
	release(r, MHD_HTTP_SERVICE_UNAVAILABLE, text_response("the request was cancelled\n"));
}

bool reply_cancel_half_closed(struct serve *s)
{
	struct connection *first = NULL;

	for (struct connection *c = s->connections; c; c = c->next) {
		if (c->held && c->half_closed_ns &&
			(!first || c->half_closed_ns < first->half_closed_ns))
			first = c;
	}
	if (first)
		reply_cancel(first->held);
	return first;
}

void serve_reply_refuse(struct serve_reply *r, unsigned int status, const char *text)
{
	struct serve *s = r->serve;

	release(r, status, text_response(text));
	server_run(s);
}

static void reply_name_download(struct MHD_Response *response)
{
	MHD_add_response_header(
		response, "Content-Disposition", "attachment; filename=\"profile.pb.gz\"");
}

void serve_reply_send_file(struct serve_reply *r, const char *content_type, int fd)
{
	struct serve *s = r->serve;
	struct MHD_Response *response = response_of_file(content_type, fd);

	if (response)
		reply_name_download(response);
	release(r, MHD_HTTP_OK, response);
	server_run(s);
}

void serve_reply_send(struct serve_reply *r, unsigned int status, const char *content_type,
	const void *bytes, size_t size)
{
	struct serve *s = r->serve;
	struct MHD_Response *response =
		response_of(content_type, NOTHING_ALLOWED, bytes, size, MHD_RESPMEM_MUST_COPY);

	if (response && status == MHD_HTTP_OK)
		reply_name_download(response);
	release(r, status, response);
	server_run(s);
}
