/* SPDX-License-Identifier: Apache-2.0 */
/* Routing, and the checks of host, token, method and origin before it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agent/server/serve/parameters.h"
#include "agent/server/serve/serve_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/moment.h"

enum {
	METHOD_GET = 1, /* and HEAD */
	METHOD_POST = 2,
	METHOD_GET_ONLY = 4, /* no HEAD: it would start a profile for nothing */
	FIGURES_LIMIT_BYTES = 4 << 20,
	METRICS_LIMIT_BYTES = 512 << 20, /* 20,000 histograms of functions with long labels */
	LIST_LIMIT_BYTES = 64 << 20,
	MAX_SECONDS = 300,
	FALLBACK_SECONDS = 30, /* the default of Go's own handler */
	MAX_PID = 1 << 22,
	MAX_HZ = 1000,
	MAX_SLICES = 1000,
	MAX_SLICE_MS = 7 * 24 * 3600 * 1000,
	MOMENT_BYTES = 64,
};

static const int64_t MS_NS = 1000000;
static const char PLAIN[] = "text/plain; charset=utf-8";
static const char JSON[] = "application/json";
static const char BAD_RANGE[] = "from= and to= must be milliseconds since 1970\n";

static const char INDEX[] =
	"<!DOCTYPE html>\n<title>fathom: profiles on demand</title>\n"
	"<h1>Profiles on demand</h1>\n"
	"<p><a href=\"profile?seconds=5\">profile?seconds=5</a>: CPU, all processes, five seconds "
	"(1 to 300; with <code>&amp;pid=N</code> of one process, with <code>&amp;hz=N</code> at a "
	"higher frequency, up to 1000)</p>\n"
	"<p><a href=\"merge?from=15m\">merge?from=15m</a>: what is stored since then "
	"(<code>&amp;to=</code>, <code>&amp;group=</code>, <code>&amp;container=</code>, "
	"<code>&amp;comm=</code> choose)</p>\n"
	"<p>Best read by <code>go tool pprof "
	"http://HOST:PORT/debug/pprof/profile?seconds=5</code></p>\n"
	"<p><a href=\"/\">Flame graphs of the recent past</a></p>\n";

struct route {
	const char *path; /* a trailing `*` matches any rest */
	unsigned int methods;
	bool open; /* for everybody */
	enum MHD_Result (*answer)(struct serve_reply *r, const char *rest);
};

/* The value of the query parameter NAME; NULL if absent. */
static const char *argument(const struct serve_reply *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

/* Reads a numeric query parameter; leaves *NUMBER unchanged if it is absent. */
static bool number_argument(
	const struct serve_reply *r, const char *name, uint64_t limit, uint64_t *number)
{
	const char *text = argument(r, name);

	return !text || parameters_number(text, limit, number);
}

static enum MHD_Result reply_made(
	struct serve_reply *r, int err, const char *type, struct buffer *body)
{
	if (!err)
		err = body->error;
	if (!err)
		return reply_buffer(r, MHD_HTTP_OK, type, body);
	buffer_deinit(body);
	if (err == -E2BIG)
		return reply_text(r, MHD_HTTP_BAD_REQUEST, "too many profiles at once\n");
	return reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-err));
}

/* ---- figures -------------------------------------------------------------------------------- */

static enum MHD_Result answer_page(struct serve_reply *r, const char *rest)
{
	(void)rest;
	return reply_page(r);
}

static enum MHD_Result answer_metrics(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	struct buffer body;
	enum MHD_Result result;
	int err;

	(void)rest;
	if (reply_shared(r, &r->serve->metrics, &result))
		return result;
	buffer_init(&body, METRICS_LIMIT_BYTES);
	err = h->metrics(h->context, &body);
	return err || body.error ? reply_made(r, err, h->metrics_type, &body)
				 : reply_sharing(r, h->metrics_type, &body, &r->serve->metrics);
}

static enum MHD_Result answer_status(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	struct buffer body;

	(void)rest;
	buffer_init(&body, FIGURES_LIMIT_BYTES);
	return reply_made(r, h->status(h->context, &body), JSON, &body);
}

static enum MHD_Result answer_healthy(struct serve_reply *r, const char *rest)
{
	(void)rest;
	return reply_text(r, MHD_HTTP_OK, "healthy\n");
}

static enum MHD_Result answer_ready(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	const char *why = h->not_ready(h->context);

	(void)rest;
	return why ? reply_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, why)
		   : reply_text(r, MHD_HTTP_OK, "ready\n");
}

/* ---- profiles ------------------------------------------------------------------------------- */

/* The range of time that a request asks for, by default all. */
static bool range_argument(const struct serve_reply *r, uint64_t *ret_from, uint64_t *ret_to)
{
	const uint64_t limit = (uint64_t)(INT64_MAX / MS_NS);

	*ret_from = 0;
	*ret_to = limit;
	return number_argument(r, "from", limit, ret_from) &&
	       number_argument(r, "to", limit, ret_to);
}

static enum MHD_Result answer_profiles(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	struct buffer body;
	uint64_t from, to, slices = 0;

	(void)rest;
	if (!range_argument(r, &from, &to))
		return reply_text(r, MHD_HTTP_BAD_REQUEST, BAD_RANGE);
	if (!number_argument(r, "slices", MAX_SLICES, &slices))
		return reply_text(r, MHD_HTTP_BAD_REQUEST, "slices= takes a number up to 1000\n");
	buffer_init(&body, LIST_LIMIT_BYTES);
	return reply_made(r,
		h->profiles(h->context, (int64_t)from * MS_NS, (int64_t)to * MS_NS,
			(unsigned int)slices, &body),
		JSON, &body);
}

static enum MHD_Result answer_latency(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	struct buffer body;
	uint64_t from, to;

	(void)rest;
	if (!range_argument(r, &from, &to))
		return reply_text(r, MHD_HTTP_BAD_REQUEST, BAD_RANGE);
	buffer_init(&body, LIST_LIMIT_BYTES);
	return reply_made(
		r, h->latency(h->context, (int64_t)from, (int64_t)to, &body), JSON, &body);
}

static enum MHD_Result answer_profile_file(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	int fd, err = h->profile_file(h->context, rest, &fd);

	if (err == -ENOENT)
		return reply_text(
			r, MHD_HTTP_NOT_FOUND, "no such profile; it may have been removed\n");
	if (err)
		return reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-err));
	return reply_file(r, "application/octet-stream", fd);
}

static enum MHD_Result answer_pprof_index(struct serve_reply *r, const char *rest)
{
	struct buffer body;

	(void)rest;
	buffer_init(&body, FIGURES_LIMIT_BYTES);
	return reply_made(r, buffer_string(&body, INDEX), "text/html; charset=utf-8", &body);
}

static int routes_begin_profile(
	struct serve_reply *r, const struct serve_profile_wish *wish, struct buffer *why)
{
	const struct serve_handlers *h = &r->serve->handlers;
	int err = h->profile_begin(h->context, r, wish, why);

	if (err == -EAGAIN && reply_cancel_half_closed(r->serve))
		err = h->profile_begin(h->context, r, wish, why);
	return err;
}

static enum MHD_Result answer_pprof_profile(struct serve_reply *r, const char *rest)
{
	uint64_t seconds = FALLBACK_SECONDS, pid = 0, hz = 0;
	struct serve_profile_wish wish;
	struct buffer why;
	int err;

	(void)rest;
	if (!number_argument(r, "seconds", MAX_SECONDS, &seconds) || seconds < 1)
		return reply_text(r, MHD_HTTP_BAD_REQUEST, "seconds= takes 1 to 300\n");
	if (!number_argument(r, "pid", MAX_PID, &pid) || (argument(r, "pid") && !pid))
		return reply_text(r, MHD_HTTP_BAD_REQUEST, "pid= must be a process ID\n");
	if (!number_argument(r, "hz", MAX_HZ, &hz) || (argument(r, "hz") && !hz))
		return reply_text(r, MHD_HTTP_BAD_REQUEST, "hz= takes 1 to 1000\n");
	wish = (struct serve_profile_wish){
		.seconds = (unsigned int)seconds, .pid = (uint32_t)pid, .hz = (unsigned int)hz
	};
	buffer_init(&why, FIGURES_LIMIT_BYTES);
	err = routes_begin_profile(r, &wish, &why);
	if (err == -ESRCH)
		return reply_buffer(r, MHD_HTTP_NOT_FOUND, PLAIN, &why);
	buffer_deinit(&why);
	if (err == -EAGAIN)
		return reply_text(
			r, MHD_HTTP_TOO_MANY_REQUESTS, "too many profiles are being taken\n");
	if (err)
		return reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-err));
	reply_hold(r);
	return MHD_YES;
}

static enum MHD_Result routes_begin_merge(struct serve_reply *r, const struct serve_merge *wanted)
{
	const struct serve_handlers *h = &r->serve->handlers;
	int err = h->merge_begin ? h->merge_begin(h->context, r, wanted) : -ENOENT;

	if (!err) {
		reply_hold(r);
		return MHD_YES;
	}
	if (err == -ENOENT)
		return reply_text(r, MHD_HTTP_NOT_FOUND, "no profile of that time is stored\n");
	if (err == -EAGAIN)
		return reply_text(
			r, MHD_HTTP_TOO_MANY_REQUESTS, "too many profiles are being merged\n");
	if (err == -E2BIG)
		return reply_text(r, MHD_HTTP_CONTENT_TOO_LARGE,
			"too many profiles: ask for less time, or for one group\n");
	return reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-err));
}

/* The query's `+` of a time zone arrives as a space. */
static bool moment_argument(const struct serve_reply *r, const char *name, int64_t *ret_ns)
{
	const char *given = argument(r, name);
	char text[MOMENT_BYTES], *space;
	int length = given ? snprintf(text, sizeof(text), "%s", given) : 0;

	if (length >= (int)sizeof(text))
		return false;
	space = length ? strrchr(text, ' ') : NULL;
	if (space && space[1] && strchr(space, ':') == strrchr(space, ':'))
		*space = '+';
	return !length || !moment_parse(text, (int64_t)clock_real_ns(), ret_ns);
}

static enum MHD_Result answer_pprof_merge(struct serve_reply *r, const char *rest)
{
	struct serve_merge wanted = { .from_ns = -1, .to_ns = (int64_t)clock_real_ns() };

	(void)rest;
	if (!moment_argument(r, "from", &wanted.from_ns) || wanted.from_ns < 0 ||
		!moment_argument(r, "to", &wanted.to_ns) || wanted.to_ns <= wanted.from_ns)
		return reply_text(r, MHD_HTTP_BAD_REQUEST,
			"from= and to= take times: 2026-11-24T10:00:00Z, seconds since 1970, "
			"or 30m and 2h ago; to= is now if it is absent\n");
	wanted.group = argument(r, "group");
	wanted.container = argument(r, "container");
	wanted.comm = argument(r, "comm");
	return routes_begin_merge(r, &wanted);
}

static enum MHD_Result answer_merged(struct serve_reply *r, const char *rest)
{
	struct serve_merge wanted = { .by_file = true };
	uint64_t from, to, slice_ms = 0;

	(void)rest;
	if (!range_argument(r, &from, &to))
		return reply_text(r, MHD_HTTP_BAD_REQUEST, BAD_RANGE);
	if (!number_argument(r, "slice_ms", MAX_SLICE_MS, &slice_ms))
		return reply_text(
			r, MHD_HTTP_BAD_REQUEST, "slice_ms= takes milliseconds, up to a week\n");
	wanted.slice_ns = (int64_t)slice_ms * MS_NS;
	wanted.from_ns = (int64_t)from * MS_NS;
	wanted.to_ns = (int64_t)to * MS_NS;
	return routes_begin_merge(r, &wanted);
}

/*
 * `go tool pprof` asks here for the names of unsymbolized locations and discards the whole profile
 * if nothing answers. Every name we know is in the profile already.
 */
static enum MHD_Result answer_pprof_symbol(struct serve_reply *r, const char *rest)
{
	(void)rest;
	return reply_text(r, MHD_HTTP_OK, "num_symbols: 0\n");
}

/* ---- the one that changes something --------------------------------------------------------- */

static enum MHD_Result answer_reload(struct serve_reply *r, const char *rest)
{
	const struct serve_handlers *h = &r->serve->handlers;
	struct buffer body;
	int err;

	(void)rest;
	buffer_init(&body, FIGURES_LIMIT_BYTES);
	err = h->reload(h->context, &body);
	return reply_buffer(r, err ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_OK, PLAIN, &body);
}

/* ---- who and what --------------------------------------------------------------------------- */

static const struct route routes[] = {
	{ "/", METHOD_GET, false, answer_page },
	{ "/metrics", METHOD_GET, true, answer_metrics },
	{ "/healthy", METHOD_GET, true, answer_healthy },
	{ "/-/healthy", METHOD_GET, true, answer_healthy },
	{ "/ready", METHOD_GET, true, answer_ready },
	{ "/-/ready", METHOD_GET, true, answer_ready },
	{ "/status", METHOD_GET, false, answer_status },
	{ "/api/profiles", METHOD_GET, false, answer_profiles },
	{ "/api/merged", METHOD_GET_ONLY, false, answer_merged },
	{ "/api/latency", METHOD_GET, false, answer_latency },
	{ "/api/profiles/*", METHOD_GET, false, answer_profile_file },
	{ "/debug/pprof/", METHOD_GET, false, answer_pprof_index },
	{ "/debug/pprof", METHOD_GET, false, answer_pprof_index },
	{ "/debug/pprof/profile", METHOD_GET_ONLY, false, answer_pprof_profile },
	{ "/debug/pprof/merge", METHOD_GET_ONLY, false, answer_pprof_merge },
	{ "/debug/pprof/symbol", METHOD_GET | METHOD_POST, false, answer_pprof_symbol },
	{ "/-/reload", METHOD_POST, false, answer_reload },
};

static const struct route *find_route(const char *path, const char **ret_rest)
{
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		size_t length = strlen(routes[i].path);
		bool prefix = routes[i].path[length - 1] == '*';

		if (prefix ? !strncmp(path, routes[i].path, length - 1)
			   : !strcmp(path, routes[i].path)) {
			*ret_rest = prefix ? path + length - 1 : "";
			return &routes[i];
		}
	}
	return NULL;
}

static bool method_allowed(const struct route *route, const char *method)
{
	if (!strcmp(method, MHD_HTTP_METHOD_GET))
		return route->methods & (METHOD_GET | METHOD_GET_ONLY);
	if (!strcmp(method, MHD_HTTP_METHOD_HEAD))
		return route->methods & METHOD_GET;
	return !strcmp(method, MHD_HTTP_METHOD_POST) && (route->methods & METHOD_POST);
}

static const char *allowed_methods(const struct route *route)
{
	if (route->methods & METHOD_POST)
		return route->methods & METHOD_GET ? "GET, HEAD, POST" : "POST";
	return route->methods & METHOD_GET ? "GET, HEAD" : "GET";
}

static const char *header(const struct serve_reply *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

static bool routes_host_is_loopback(const struct serve_reply *r)
{
	const char *host = header(r, MHD_HTTP_HEADER_HOST);

	return !host || address_host_is_loopback(host);
}

/*
 * Listening on loopback keeps other machines out, but not pages in a local browser that use DNS
 * rebinding: their Host header gives them away.
 */
static bool host_fits(const struct serve_reply *r)
{
	return !r->connection->listener->address.loopback || routes_host_is_loopback(r);
}

/* A page of another origin can send a POST, though not read its answer. */
static bool origin_fits(const struct serve_reply *r)
{
	const char *origin = header(r, MHD_HTTP_HEADER_ORIGIN);
	const char *host = header(r, MHD_HTTP_HEADER_HOST);

	return !origin || (host && parameters_same_origin(origin, host));
}

bool routes_has_token(const struct serve_reply *r)
{
	const char *given = header(r, MHD_HTTP_HEADER_AUTHORIZATION);

	return given && r->serve->token && parameters_authorized(given, r->serve->token);
}

/*
 * An owner on loopback needs the token, too, if the request could be a browser's that DNS rebinding
 * has sent here.
 */
static bool routes_may_read(const struct serve_reply *r, const struct route *route)
{
	if (route && route->open)
		return true;
	if (r->connection->owner &&
		(routes_host_is_loopback(r) ||
			address_is_socket_file(&r->connection->listener->address)))
		return true;
	return routes_has_token(r);
}

enum MHD_Result routes_answer(struct serve_reply *r, const char *path, const char *method)
{
	const char *rest;
	const struct route *route = find_route(path, &rest);

	if (r->serve->page.bytes && route && route->answer != answer_page)
		route = NULL;
	if (!host_fits(r))
		return reply_text(r, MHD_HTTP_FORBIDDEN,
			"the Host header does not name this machine: use 127.0.0.1 or localhost\n");
	if (!routes_may_read(r, route))
		return reply_unauthorized(r);
	if (!route)
		return reply_text(r, MHD_HTTP_NOT_FOUND, "no such page\n");
	if (!method_allowed(route, method))
		return reply_wrong_method(r, allowed_methods(route));
	if (!strcmp(method, MHD_HTTP_METHOD_POST) && !origin_fits(r))
		return reply_text(
			r, MHD_HTTP_FORBIDDEN, "requests from other sites are not allowed\n");
	return route->answer(r, rest);
}
