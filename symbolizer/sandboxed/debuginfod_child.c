/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child that asks servers, in the order of the list, so that a public server after one's own
 * sees only what that does not have. If a server has not answered after HEAD_START_NS, the next one
 * is asked in parallel. The first server that sends a file is the only one used, unless its
 * transfer fails. All servers together have MAX_SECONDS; one that sends less than 100 KiB in
 * DEBUGINFOD_TIMEOUT seconds is given up, as in libdebuginfod. Data is counted after decompression
 * and has to begin like an ELF file: a login page is not downloaded to its end.
 *
 * There is no system-call filter here, because the calls of name services and TLS libraries differ
 * between machines. The child has no capabilities, only three descriptors, and limits.
 */
#include "symbolizer/sandboxed/debuginfod_child.h"

#include <curl/curl.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/version.h"
#include "symbolizer/debuginfod/debuginfod_fetch.h"
#include "symbolizer/debuginfod/debuginfod_wire.h"
#include "symbolizer/sandbox/sandbox_wire.h"
#include "symbolizer/sandboxed/close_in.h"

enum {
	MAX_SECONDS = 600,
	CONNECT_SECONDS = 10,
	SLOW_SECONDS = 90,
	SLOW_BYTES = 100 << 10, /* in SLOW_SECONDS */
	FAREWELL_SECONDS = 5,
	MAX_REDIRECTS = 5,
	MAX_SERVERS = 16,
	MAX_URL_BYTES = 4096,
	MAX_DESCRIPTORS = 64,
};
static const rlim_t MAX_MEMORY_BYTES = (rlim_t)2 << 30; /* address space, with threads' stacks */
static const uint64_t HEAD_START_NS = UINT64_C(2000000000); /* before the next one is asked */

struct asking;

struct server {
	struct asking *asking;
	const char *url; /* points into the list, not terminated */
	size_t url_length;
	CURL *easy; /* NULL = no transfer */
	bool over; /* the server has failed */
	bool too_late; /* cancelled for another sender: may be asked again */
	uint64_t bytes;
	uint8_t head[SELFMAG];
	int error; /* why the body was rejected; 0 = accepted */
};

struct asking {
	const char *build_id;
	uint64_t limit_bytes;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	unsigned long slow_seconds; /* 0 = no limit */
	CURLM *multi;
	struct server servers[MAX_SERVERS];
	size_t server_count, active;
	struct server *sender; /* server whose file is being written; NULL = none */
	uint64_t begun_ns; /* when the last server was asked; 0 = it has failed */
	struct sandbox_result result;
	bool found;
};

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);
	unsigned long number;

	return text && sandbox_parse_number(text, &number) ? number : otherwise;
}

/* ---- the body ------------------------------------------------------------------------------- */

static bool begins_as_elf(struct server *s, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size && s->bytes + i < SELFMAG; i++)
		s->head[s->bytes + i] = bytes[i];
	return !memcmp(s->head, ELFMAG, MIN(s->bytes + size, (uint64_t)SELFMAG));
}

/* Discards what another server has sent. */
static int become_sender(struct server *s)
{
	if (lseek(SANDBOX_OUTPUT_FD, 0, SEEK_SET) || ftruncate(SANDBOX_OUTPUT_FD, 0))
		return -errno;
	s->asking->sender = s;
	return 0;
}

static int debuginfod_child_take_bytes(struct server *s, const char *bytes, size_t size)
{
	struct asking *a = s->asking;
	int err = 0;

	if (!begins_as_elf(s, (const uint8_t *)bytes, size))
		return -EBADMSG;
	if (size > a->limit_bytes - s->bytes)
		return -EFBIG;
	if (a->sender != s)
		err = become_sender(s);
	return err ? err : io_write_all(SANDBOX_OUTPUT_FD, bytes, size);
}

static size_t on_body(char *bytes, size_t one, size_t count, void *context)
{
	struct server *s = context;
	size_t size = one * count;

	if (s->asking->sender && s->asking->sender != s) {
		s->too_late = true;
		return 0;
	}
	s->error = debuginfod_child_take_bytes(s, bytes, size);
	s->bytes += size;
	return s->error ? 0 : size;
}

/* ---- one server ----------------------------------------------------------------------------- */

static long milliseconds_left(const struct asking *a)
{
	uint64_t now_ns = clock_monotonic_ns();

	return now_ns < a->deadline_ns ? (long)((a->deadline_ns - now_ns) / 1000000) : 0;
}

static CURLcode debuginfod_child_set_limits(const struct asking *a, CURL *easy)
{
	CURLcode code = CURLE_OK;

	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, milliseconds_left(a));
	if (a->slow_seconds) {
		code |= curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)a->slow_seconds);
		code |= curl_easy_setopt(
			easy, CURLOPT_LOW_SPEED_LIMIT, (long)(SLOW_BYTES / a->slow_seconds) + 1);
	}
	code |= curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)a->limit_bytes);
	code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	code |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	code |= curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	return code;
}

/* libcurl has its own default for certificates and does not read OpenSSL's variables. */
static CURLcode set_certificates(CURL *easy)
{
	const char *file = getenv("SSL_CERT_FILE"), *directory = getenv("SSL_CERT_DIR");
	CURLcode code = CURLE_OK;

	if (file && *file)
		code |= curl_easy_setopt(easy, CURLOPT_CAINFO, file);
	if (directory && *directory)
		code |= curl_easy_setopt(easy, CURLOPT_CAPATH, directory);
	return code;
}

static CURLcode set_options(struct server *s, const char *url)
{
	CURL *easy = s->easy;
	CURLcode code = CURLE_OK;

	code |= curl_easy_setopt(easy, CURLOPT_URL, url);
	code |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "fathom/" FATHOM_VERSION);
	code |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	code |= curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, s);
	code |= curl_easy_setopt(easy, CURLOPT_PRIVATE, s);
	code |= debuginfod_child_set_limits(s->asking, easy);
	code |= set_certificates(easy);
	return code;
}

static int error_of_status(long status)
{
	switch (status) {
	case 400: /* debuginfod: malformed build ID */
	case 404:
	case 406: /* debuginfod: larger than the client's limit */
	case 410:
		return -ENOENT;
	case 401:
	case 403:
	case 407:
		return -EACCES;
	default:
		return -EREMOTEIO;
	}
}

static int error_of_code(CURLcode code)
{
	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_FAILED_INIT:
		return -ENOSYS;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return -EKEYREJECTED;
	case CURLE_FILESIZE_EXCEEDED:
		return -EFBIG;
	case CURLE_TOO_MANY_REDIRECTS:
		return -ELOOP;
	case CURLE_URL_MALFORMAT:
		return -EINVAL;
	default:
		return -EREMOTEIO;
	}
}

static int judge(const struct server *s, CURLcode code, long status)
{
	if (s->error)
		return s->error;
	if (code == CURLE_HTTP_RETURNED_ERROR || (code == CURLE_OK && status != 200))
		return error_of_status(status);
	if (code == CURLE_OK && s->bytes < SELFMAG)
		return -EBADMSG;
	return error_of_code(code);
}

/* Returns the more informative error: a server that could not be asked may have the file. */
static int worse(int error, int other)
{
	static const int order[] = { 0, -ENOENT, -EFBIG, -EBADMSG };
	size_t a = 0, b = 0;

	while (a < ARRAY_SIZE(order) && order[a] != error)
		a++;
	while (b < ARRAY_SIZE(order) && order[b] != other)
		b++;
	return b > a ? other : error;
}

static void debuginfod_child_fail(struct server *s, int err, long status)
{
	struct sandbox_result *result = &s->asking->result;

	s->over = true;
	s->asking->begun_ns = 0; /* ask the next server at once */
	if (status)
		result->broken_units = (result->broken_units & DEBUGINFOD_ANSWERED) |
				       ((unsigned int)status & DEBUGINFOD_STATUS_MASK);
	if (err == -ENOENT || err == -EFBIG)
		result->broken_units |= DEBUGINFOD_ANSWERED;
	result->error = worse(result->error, err);
}

static void begin(struct server *s)
{
	struct asking *a = s->asking;
	char url[MAX_URL_BYTES];
	int used = snprintf(url, sizeof(url), "%.*s/buildid/%s/debuginfo",
		(int)MIN(s->url_length, sizeof(url)), s->url, a->build_id);

	a->begun_ns = clock_monotonic_ns();
	s->bytes = 0;
	s->error = 0;
	s->too_late = false;
	if (used <= 0 || (size_t)used >= sizeof(url)) {
		debuginfod_child_fail(s, -EINVAL, 0);
		return;
	}
	s->easy = curl_easy_init();
	if (s->easy && set_options(s, url) == CURLE_OK &&
		curl_multi_add_handle(a->multi, s->easy) == CURLM_OK) {
		a->active++;
		return;
	}
	if (s->easy)
		curl_easy_cleanup(s->easy);
	s->easy = NULL;
	debuginfod_child_fail(s, -ENOSYS, 0);
}

static void end(struct server *s, CURLcode code)
{
	struct asking *a = s->asking;
	long status = 0;
	int err;

	(void)curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_multi_remove_handle(a->multi, s->easy);
	curl_easy_cleanup(s->easy);
	s->easy = NULL;
	a->active--;
	if (s->too_late)
		return;
	err = judge(s, code, status);
	if (a->sender == s)
		a->sender = NULL;
	if (err) {
		debuginfod_child_fail(s, err, status);
		return;
	}
	a->found = true;
	a->result = (struct sandbox_result){ .broken_units = DEBUGINFOD_ANSWERED |
							     ((unsigned int)status &
								     DEBUGINFOD_STATUS_MASK) };
}

/* ---- all of them ---------------------------------------------------------------------------- */

static struct server *next_server(struct asking *a)
{
	for (size_t i = 0; i < a->server_count; i++) {
		if (!a->servers[i].over && !a->servers[i].easy)
			return &a->servers[i];
	}
	return NULL;
}

/* Time until the next server is asked, at most a second. */
static int milliseconds_of_entry(const struct asking *a)
{
	uint64_t since_ns = clock_monotonic_ns() - a->begun_ns;
	uint64_t rest_ns = since_ns < HEAD_START_NS ? HEAD_START_NS - since_ns : HEAD_START_NS;

	return (int)MIN(rest_ns / 1000000 + 1, UINT64_C(1000));
}

static void collect_ended(struct asking *a)
{
	CURLMsg *message;
	int left;

	while (!a->found && (message = curl_multi_info_read(a->multi, &left)) != NULL) {
		struct server *s = NULL;

		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&s);
		if (message->msg == CURLMSG_DONE && s)
			end(s, message->data.result);
	}
}

/* Returns false if all servers or the time are used up. */
static bool turn(struct asking *a)
{
	struct server *next = a->sender ? NULL : next_server(a);
	int running;

	if (!milliseconds_left(a))
		return false;
	if (next && (!a->active || clock_monotonic_ns() - a->begun_ns >= HEAD_START_NS))
		begin(next);
	if (curl_multi_perform(a->multi, &running) != CURLM_OK)
		return false;
	collect_ended(a);
	if (a->found || (!a->active && !next_server(a)))
		return false;
	return !a->active ||
	       curl_multi_poll(a->multi, NULL, 0, milliseconds_of_entry(a), NULL) == CURLM_OK;
}

static void list_servers(struct asking *a, const char *urls)
{
	const char *url;
	size_t length;

	while (a->server_count < MAX_SERVERS && (url = debuginfod_next_url(&urls, &length)))
		a->servers[a->server_count++] =
			(struct server){ .asking = a, .url = url, .url_length = length };
}

static struct sandbox_result ask_all(struct asking *a, const char *urls)
{
	list_servers(a, urls);
	a->multi = curl_multi_init();
	if (!a->multi)
		return (struct sandbox_result){ .error = -ENOSYS };
	while (turn(a))
		;
	/* Servers that have not answered by now. */
	for (size_t i = 0; !a->found && i < a->server_count; i++) {
		if (!a->servers[i].over)
			debuginfod_child_fail(&a->servers[i], -ETIMEDOUT, 0);
	}
	return a->result;
}

static int close_in(unsigned long parent, uint64_t limit_bytes)
{
	int err = sandbox_tie_to_parent((pid_t)parent);

	sandbox_lower_priority();
	if (!err && syscall(SYS_close_range, SANDBOX_RESULT_FD + 1, ~0u, 0))
		err = -errno;
	if (!err)
		err = sandbox_drop_capabilities();
	if (!err)
		err = sandbox_limit(RLIMIT_CORE, 0, 0);
	if (!err)
		err = sandbox_limit(RLIMIT_NOFILE, MAX_DESCRIPTORS, MAX_DESCRIPTORS);
	if (!err)
		err = sandbox_limit(RLIMIT_FSIZE, limit_bytes, limit_bytes);
	if (!err && sandbox_is_closed())
		err = sandbox_limit(RLIMIT_AS, MAX_MEMORY_BYTES, MAX_MEMORY_BYTES);
	return err;
}

int debuginfod_child_main(int argc, char **argv)
{
	const char *urls = getenv(DEBUGINFOD_URLS);
	unsigned long parent, limit_bytes, seconds = from_environment(DEBUGINFOD_MAXTIME, 0);
	unsigned long environment_bytes = from_environment(DEBUGINFOD_MAXSIZE, 0);
	struct asking a = { .slow_seconds = from_environment(DEBUGINFOD_TIMEOUT, SLOW_SECONDS) };
	struct sandbox_result result;

	if (argc != DEBUGINFOD_ARGUMENTS || !urls || !sandbox_parse_number(argv[2], &parent) ||
		!sandbox_parse_number(argv[3], &limit_bytes) || close_in(parent, limit_bytes))
		return EXIT_FAILURE;
	if (!seconds || seconds > MAX_SECONDS)
		seconds = MAX_SECONDS;
	a.limit_bytes = environment_bytes ? MIN(limit_bytes, environment_bytes) : limit_bytes;
	a.deadline_ns = clock_monotonic_ns() + seconds * UINT64_C(1000000000);
	a.build_id = argv[4];
	/* Name resolution may block without a time limit. */
	(void)alarm((unsigned int)seconds + FAREWELL_SECONDS);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		result = (struct sandbox_result){ .error = -ENOSYS };
	else
		result = ask_all(&a, urls);
	sandbox_report(&result);
}
