/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child that asks. Servers are asked in the order of the list until one has the file. All of
 * them together have MAX_SECONDS; one that sends less than 100 KiB in DEBUGINFOD_TIMEOUT seconds is
 * given up, as libdebuginfod does. What a server sends is counted after decompression, and has to
 * begin as an ELF file does: a login page is not downloaded to its end.
 *
 * There is no filter of system calls here: what name services and TLS libraries call differs from
 * one machine to the next. There are no capabilities, no descriptors but three, and limits.
 */
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
#include "symbolizer/debuginfod_fetch.h"
#include "symbolizer/debuginfod_wire.h"
#include "symbolizer/sandbox_steps.h"
#include "symbolizer/sandbox_wire.h"

enum {
	MAX_SECONDS = 600,
	CONNECT_SECONDS = 10,
	SLOW_SECONDS = 90,
	SLOW_BYTES = 100 << 10, /* in that time */
	FAREWELL_SECONDS = 5,
	MAX_REDIRECTS = 5,
	MAX_SERVERS = 16,
	MAX_URL_BYTES = 4096,
	MAX_DESCRIPTORS = 64,
};
static const rlim_t MAX_MEMORY_BYTES = (rlim_t)2 << 30; /* addresses, threads' stacks included */

struct asking {
	const char *build_id;
	uint64_t limit_bytes;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	unsigned long slow_seconds; /* 0 = it may be as slow as it likes */
	CURL *easy;
	/* of the server that is being asked */
	uint64_t bytes;
	uint8_t head[SELFMAG];
	int error; /* why the body was not taken; 0 = it was */
};

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);
	unsigned long number;

	return text && sandbox_parse_number(text, &number) ? number : otherwise;
}

/* ---- the body ------------------------------------------------------------------------------- */

static bool begins_as_elf(struct asking *a, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size && a->bytes + i < SELFMAG; i++)
		a->head[a->bytes + i] = bytes[i];
	return !memcmp(a->head, ELFMAG, MIN(a->bytes + size, (uint64_t)SELFMAG));
}

static size_t on_body(char *bytes, size_t one, size_t count, void *context)
{
	struct asking *a = context;
	size_t size = one * count;

	if (!begins_as_elf(a, (const uint8_t *)bytes, size))
		a->error = -EBADMSG;
	else if (size > a->limit_bytes - a->bytes)
		a->error = -EFBIG;
	else
		a->error = io_write_all(SANDBOX_OUTPUT_FD, bytes, size);
	a->bytes += size;
	return a->error ? 0 : size;
}

/* ---- one server ----------------------------------------------------------------------------- */

static long milliseconds_left(const struct asking *a)
{
	uint64_t now_ns = clock_monotonic_ns();

	return now_ns < a->deadline_ns ? (long)((a->deadline_ns - now_ns) / 1000000) : 0;
}

static CURLcode set_limits(struct asking *a)
{
	CURL *easy = a->easy;
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

/* libcurl has a place of its own for certificates and does not read OpenSSL's variables. */
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

static CURLcode set_options(struct asking *a, const char *url)
{
	CURL *easy = a->easy;
	CURLcode code = CURLE_OK;

	code |= curl_easy_setopt(easy, CURLOPT_URL, url);
	code |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "fathom/" FATHOM_VERSION);
	code |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
	code |= curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, a);
	code |= set_limits(a);
	code |= set_certificates(easy);
	return code;
}

static int error_of_status(long status)
{
	switch (status) {
	case 400: /* debuginfod: a build ID that it cannot read */
	case 404:
	case 406: /* debuginfod: larger than the asker wants */
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

static int judge(const struct asking *a, CURLcode code, long status)
{
	if (a->error)
		return a->error;
	if (code == CURLE_HTTP_RETURNED_ERROR || (code == CURLE_OK && status != 200))
		return error_of_status(status);
	if (code == CURLE_OK && a->bytes < SELFMAG)
		return -EBADMSG;
	return error_of_code(code);
}

static int ask(struct asking *a, const char *url, long *ret_status)
{
	CURLcode code;

	a->bytes = 0;
	a->error = 0;
	if (lseek(SANDBOX_OUTPUT_FD, 0, SEEK_SET) || ftruncate(SANDBOX_OUTPUT_FD, 0))
		return -errno;
	a->easy = curl_easy_init();
	if (!a->easy)
		return -ENOSYS;
	code = set_options(a, url);
	if (code == CURLE_OK)
		code = curl_easy_perform(a->easy);
	(void)curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, ret_status);
	curl_easy_cleanup(a->easy);
	return judge(a, code, *ret_status);
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* What tells more of why there is no file: one that cannot be asked may have it. */
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

static struct builder_result ask_all(struct asking *a, const char *urls)
{
	struct builder_result result = { 0 };
	char url[MAX_URL_BYTES];
	const char *server;
	size_t length;

	for (int i = 0; i < MAX_SERVERS && (server = debuginfod_next_url(&urls, &length)); i++) {
		long status = 0;
		int err = -EINVAL, used = snprintf(url, sizeof(url), "%.*s/buildid/%s/debuginfo",
					   (int)MIN(length, sizeof(url)), server, a->build_id);

		if (used > 0 && (size_t)used < sizeof(url) && milliseconds_left(a))
			err = ask(a, url, &status);
		if (status)
			result.broken_units = (result.broken_units & DEBUGINFOD_ANSWERED) |
					      ((unsigned int)status & DEBUGINFOD_STATUS_MASK);
		if (!err || err == -ENOENT || err == -EFBIG)
			result.broken_units |= DEBUGINFOD_ANSWERED;
		result.error = err ? worse(result.error, err) : 0;
		if (!err)
			break;
	}
	return result;
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
	struct builder_result result;

	if (argc != DEBUGINFOD_ARGUMENTS || !urls || !sandbox_parse_number(argv[2], &parent) ||
		!sandbox_parse_number(argv[3], &limit_bytes) || close_in(parent, limit_bytes))
		return EXIT_FAILURE;
	if (!seconds || seconds > MAX_SECONDS)
		seconds = MAX_SECONDS;
	a.limit_bytes = environment_bytes ? MIN(limit_bytes, environment_bytes) : limit_bytes;
	a.deadline_ns = clock_monotonic_ns() + seconds * UINT64_C(1000000000);
	a.build_id = argv[4];
	/* A name server that does not answer is waited for in a call that knows no time. */
	(void)alarm((unsigned int)seconds + FAREWELL_SECONDS);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		result = (struct builder_result){ .error = -ENOSYS };
	else
		result = ask_all(&a, urls);
	sandbox_report(&result);
}
