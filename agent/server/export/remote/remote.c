/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store has one easy handle for its whole life: connections stay open in the multi handle. A send
 * is one request, or two if the server does not support the way tried first. The verdict is stored
 * in `result` and delivered by remotes_run(), even if it is known at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "agent/server/export/remote/retry_after.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/secret_file.h"

enum { CONNECT_TIMEOUT_MS = 10000 };

static const uint64_t DEFAULT_TIMEOUT_NS = UINT64_C(30000000000);
/* How long to use the old way before trying the newer one again: servers get upgraded. */
static const uint64_t OLD_WAY_NS = UINT64_C(3600000000000);

/* ---- creating ------------------------------------------------------------------------------ */
static int remote_append(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*list, text);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int append_header(struct curl_slist **list, const char *name, const char *value)
{
	autofree char *text = NULL;

	/* curl drops a header that ends in ':' and sends one that ends in ';' without a value. */
	if (asprintf(&text, *value ? "%s: %s" : "%s;", name, value) < 0)
		return -ENOMEM;
	return remote_append(list, text);
}

static int keep_headers(struct remote *remote, const struct remote_options *o)
{
	int err = 0;

	remote->secrets = calloc(o->header_count + 1, sizeof(*remote->secrets));
	if (!remote->secrets)
		return -ENOMEM;
	for (size_t i = 0; !err && i < o->header_count; i++) {
		size_t length = strcspn(o->headers[i], ":");
		const char *value = o->headers[i] + length;
		autofree char *name = strndup(o->headers[i], length);

		value += strspn(value, ": \t");
		remote->secrets[remote->secret_count++] = strdup(value);
		if (!name || !remote->secrets[i])
			return -ENOMEM;
		err = append_header(&remote->given_headers, name, value);
	}
	if (!err && o->tenant_id)
		err = append_header(&remote->given_headers, "X-Scope-OrgID", o->tenant_id);
	return err;
}

/* Connects to the address but uses SERVER_NAME for TLS; the Host header keeps the address. */
static int rename_server(struct remote *remote, const char *server_name)
{
	char renamed[REMOTE_URL_BYTES], text[2 * REMOTE_URL_BYTES], *host, *rest;
	size_t authority, name;
	const char *port;

	host = remote->url + strlen("https://");
	authority = strcspn(host, "/");
	rest = host + authority;
	name = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
	port = host + name + 1; /* always there: CURLU_DEFAULT_PORT */
	snprintf(text, sizeof(text), "%s:%.*s:%.*s", server_name, (int)(authority - name - 1), port,
		(int)authority, host);
	if (remote_append(&remote->connect_to, text))
		return -ENOMEM;
	snprintf(text, sizeof(text), "Host: %.*s", (int)authority, host);
	if (remote_append(&remote->given_headers, text))
		return -ENOMEM;
	if (snprintf(renamed, sizeof(renamed), "https://%s:%.*s%s", server_name,
		    (int)(authority - name - 1), port, rest) >= REMOTE_URL_BYTES)
		return -EINVAL;
	memcpy(remote->url, renamed, sizeof(renamed));
	return 0;
}

static int setup_tls(struct remote *remote, const struct remote_options *o)
{
	CURL *easy = remote->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);

	if (o->ca_file && !o->also_system_ca)
		code |= curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	if (o->insecure_skip_verify) {
		code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
		code |= curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (code != CURLE_OK)
		return -ENOMEM;
	return o->server_name ? rename_server(remote, o->server_name) : 0;
}

/*
 * libcurl repeats a request if a reused connection turns out to be closed. The first one may have
 * arrived, so repetitions are counted.
 */
static int remote_on_request(
	void *context, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
	struct remote *remote = context;

	(void)remote_ip;
	(void)local_ip;
	(void)remote_port;
	(void)local_port;
	remote->requests++;
	return CURL_PREREQFUNC_OK;
}

static int setup_transfer(struct remote *remote, const struct remote_options *o)
{
	uint64_t timeout_ms = (o->timeout_ns ? o->timeout_ns : DEFAULT_TIMEOUT_NS) / 1000000;
	CURL *easy = remote->easy;
	CURLcode code = CURLE_OK;

	timeout_ms = MAX(timeout_ms, 1);
	code |= curl_easy_setopt(easy, CURLOPT_PRIVATE, remote);
	code |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* A hanging resolver must not delay our exit. */
	code |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	code |= curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	code |= curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
	code |= curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	code |= curl_easy_setopt(easy, CURLOPT_USERAGENT, "fathom/" FATHOM_VERSION);
	code |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)MIN(timeout_ms, LONG_MAX));
	code |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
		(long)MIN(timeout_ms, (uint64_t)CONNECT_TIMEOUT_MS));
	code |= curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, remote->error_text);
	code |= curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, answer_on_header);
	code |= curl_easy_setopt(easy, CURLOPT_HEADERDATA, &remote->answer);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, answer_on_body);
	code |= curl_easy_setopt(easy, CURLOPT_WRITEDATA, &remote->answer);
	code |= curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, remote_on_request);
	code |= curl_easy_setopt(easy, CURLOPT_PREREQDATA, remote);
	if (remote->proxy_url)
		code |= curl_easy_setopt(easy, CURLOPT_PROXY, remote->proxy_url);
	if (remote->credentials.user)
		code |= curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

static int remote_fill(struct remote *remote, const struct remote_options *o)
{
	int err = credentials_init(&remote->credentials, o);

	if (!err)
		err = certificates_init(&remote->certificates, o);
	buffer_init(&remote->body, REMOTE_BODY_BYTES);
	remote->protocol = remote_type_protocol(o->type);
	remote->way = o->way;
	remote->name = strdup(o->name ? o->name : "remote");
	remote->proxy_url = o->proxy_url ? strdup(o->proxy_url) : NULL;
	if (err || !remote->name || !remote->proxy_url != !o->proxy_url)
		return -ENOMEM;
	if (remote->protocol->write)
		return 0;
	remote->easy = curl_easy_init();
	if (!remote->easy)
		return -ENOMEM;
	err = keep_headers(remote, o);
	if (!err)
		err = setup_transfer(remote, o);
	return err ? err : setup_tls(remote, o);
}

/* Prefixes *MESSAGE with OPTIONS' place. */
static void say_where(const struct remote_options *options, char **message)
{
	autofree char *what = NULL;

	if (!options->place || !*message)
		return;
	what = take(*message);
	if (asprintf(message, "%s: %s", options->place, what) < 0)
		*message = NULL;
}

int remote_create(struct remotes *r, const struct remote_options *options,
	struct remote **ret_remote, char **ret_message)
{
	char url[REMOTE_URL_BYTES] = "";
	struct remote *remote;
	int err;

	*ret_message = NULL;
	err = remote_options_check(options, url, ret_message);
	if (err) {
		say_where(options, ret_message);
		return err;
	}
	remote = calloc(1, sizeof(*remote));
	if (!remote)
		return -ENOMEM;
	remote->owner = r;
	memcpy(remote->url, url, sizeof(url));
	err = remote_fill(remote, options);
	if (err) {
		remote_destroy(remote);
		return err;
	}
	remotes_add(r, remote);
	*ret_remote = remote;
	return 0;
}

void remote_destroy(struct remote *remote)
{
	if (!remote)
		return;
	remotes_remove(remote->owner, remote);
	curl_easy_cleanup(remote->easy);
	curl_slist_free_all(remote->headers);
	curl_slist_free_all(remote->given_headers);
	curl_slist_free_all(remote->connect_to);
	for (size_t i = 0; i < remote->secret_count; i++)
		free(remote->secrets[i]);
	free(remote->secrets);
	credentials_deinit(&remote->credentials);
	certificates_deinit(&remote->certificates);
	buffer_deinit(&remote->body);
	free(remote->proxy_url);
	free(remote->name);
	free(remote);
}

/* ---- sending ------------------------------------------------------------------------------- */
static void remote_settle(struct remote *remote)
{
	struct remote_result *result = &remote->result;
	const struct credentials *c = &remote->credentials;

	credentials_hide(result->message, c->token);
	credentials_hide(result->message, c->password);
	credentials_hide(result->message, remote->proxy_url);
	for (size_t i = 0; i < remote->secret_count; i++)
		credentials_hide(result->message, remote->secrets[i]);
	result->sent_bytes = remote->sent_bytes;
	result->resent = remote->requests > 1;
	buffer_deinit(&remote->body);
	remote->judged = true;
}

static int request_headers(struct remote *remote, const struct request *request)
{
	autofree char *bearer = NULL;
	int err;

	curl_slist_free_all(remote->headers);
	remote->headers = NULL;
	/* Otherwise curl waits a second for permission to send a large body. */
	err = remote_append(&remote->headers, "Expect:");
	if (!err && request->content_type)
		err = append_header(&remote->headers, "Content-Type", request->content_type);
	else if (!err)
		err = remote_append(&remote->headers, "Content-Type:");
	if (!err && request->grpc)
		err = append_header(&remote->headers, "TE", "trailers");
	if (!err && request->gzip)
		err = append_header(&remote->headers,
			request->grpc ? "grpc-encoding" : "Content-Encoding", "gzip");
	if (!err && remote->credentials.token) {
		if (asprintf(&bearer, "Bearer %s", remote->credentials.token) < 0)
			return -ENOMEM;
		err = append_header(&remote->headers, "Authorization", bearer);
	}
	for (const struct curl_slist *h = remote->given_headers; h && !err; h = h->next)
		err = remote_append(&remote->headers, h->data);
	return err;
}

static int request_setup(struct remote *remote, const struct request *request)
{
	bool tls = !strncmp(request->url, "https:", 6);
	long version = CURL_HTTP_VERSION_1_1;
	CURL *easy = remote->easy;
	CURLcode code = CURLE_OK;

	if (request->grpc)
		version = tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
	if (request_headers(remote, request))
		return -ENOMEM;
	code |= curl_easy_setopt(easy, CURLOPT_URL, request->url);
	code |= curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->put ? "PUT" : NULL);
	code |= curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
	/* libcurl 7.88 cannot reuse a connection that started with HTTP/2 in plain text. */
	code |= curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->grpc && !tls ? 1L : 0L);
	code |= curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, request->grpc && !tls ? 1L : 0L);
	/* HTTP/2 in plain text passes a proxy only through a tunnel. */
	code |= curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, request->grpc ? 1L : 0L);
	code |= curl_easy_setopt(easy, CURLOPT_HTTPHEADER, remote->headers);
	code |= curl_easy_setopt(easy, CURLOPT_CONNECT_TO, remote->connect_to);
	if (remote->credentials.user) {
		code |= curl_easy_setopt(easy, CURLOPT_USERNAME, remote->credentials.user);
		code |= curl_easy_setopt(easy, CURLOPT_PASSWORD, remote->credentials.password);
	}
	if (code != CURLE_OK)
		return -ENOMEM;
	if (remote->call)
		return remote_call_setup(remote);
	code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)remote->body.size);
	code |= curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)remote->body.bytes);
	return code == CURLE_OK ? 0 : -ENOMEM;
}

/* Builds and starts one request. On error nothing was sent. */
static int remote_start(struct remote *remote)
{
	struct request request = { .content_type = "" };
	int err;

	buffer_deinit(&remote->body);
	err = remote->call ? remote_call_request(remote, &request)
			   : remote->protocol->build(remote, remote->payload, &request);
	if (err)
		return err;
	answer_init(&remote->answer);
	remote->error_text[0] = 0;
	remote->requests = 0;
	err = request_setup(remote, &request);
	return err ? err : remotes_start(remote->owner, remote);
}

static void start_or_settle(struct remote *remote)
{
	int err = remote_start(remote);

	if (!err)
		return;
	verdict_set(&remote->result, err == -ENOMEM ? REMOTE_RETRY : REMOTE_REFUSED,
		err == -ENOMEM  ? "memory"
		: err == -E2BIG ? "too_large"
				: "invalid",
		"%s", err == -EBADMSG ? "the profile is malformed" : strerror(-err));
	remote_settle(remote);
}

static bool files_are_read(struct remote *remote)
{
	const char *which = "";
	int err = credentials_refresh(&remote->credentials, &which);

	if (err) {
		verdict_set(&remote->result, REMOTE_DENIED, "credentials", "%s: %s", which,
			secret_file_explain(err));
		return false;
	}
	err = certificates_refresh(&remote->certificates, remote->easy, &which);
	if (err)
		verdict_set(&remote->result, REMOTE_DENIED, "certificate", "%s: %s", which,
			err == -ENODATA ? "it is empty" : strerror(-err));
	return !err;
}

/* Servers refuse these or, worse, answer 200 and store nothing. */
static bool refuse_payload(const struct payload *payload, struct remote_result *result)
{
	const char *missing = NULL;

	if (!payload->pprof.size)
		missing = "an empty profile";
	else if (!labels_get(&payload->labels, "__name__"))
		missing = "the label __name__ is missing";
	else if (payload->time_ns <= 0)
		missing = "no time";
	if (missing)
		verdict_set(result, REMOTE_REFUSED, "invalid", "%s", missing);
	return missing != NULL;
}

static void write_payload(struct remote *remote)
{
	remote->protocol->write(remote->url, remote->payload, &remote->result);
	if (remote->result.verdict == REMOTE_SENT)
		remote->sent_bytes = remote->payload->pprof.size;
	remote_settle(remote);
}

static int remote_begin(struct remote *remote, remote_done_fn *done, void *context)
{
	if (remote->payload || remote->call)
		return -EBUSY;
	remote->done = done;
	remote->context = context;
	remote->result = (struct remote_result){ 0 };
	remote->sent_bytes = 0;
	remote->requests = 0;
	remote->has_switched = false;
	return 0;
}

int remote_call(
	struct remote *remote, const struct remote_call *call, remote_done_fn *done, void *context)
{
	int err = remote_begin(remote, done, context);

	if (err)
		return err;
	remote->call = call;
	if (files_are_read(remote))
		start_or_settle(remote);
	else
		remote_settle(remote);
	return 0;
}

int remote_send(
	struct remote *remote, const struct payload *payload, remote_done_fn *done, void *context)
{
	int err = remote_begin(remote, done, context);

	if (err)
		return err;
	remote->payload = payload;
	if (remote->old_way && clock_monotonic_ns() - remote->old_way_since_ns > OLD_WAY_NS)
		remote->old_way = false;
	if (refuse_payload(payload, &remote->result))
		remote_settle(remote);
	else if (remote->protocol->write)
		write_payload(remote);
	else if ((remote->protocol->refuses &&
			 remote->protocol->refuses(payload, &remote->result)) ||
		 !files_are_read(remote))
		remote_settle(remote);
	else
		start_or_settle(remote);
	return 0;
}

/* ---- the end of a transfer ----------------------------------------------------------------- */
static void read_outcome(struct remote *remote, CURLcode code, struct outcome *ret_outcome)
{
	uint64_t body_bytes = remote->call ? remote->call->size : remote->body.size;
	const struct answer *answer = &remote->answer;
	curl_off_t uploaded = 0;
	long head = 0, proxy_status = 0;

	curl_easy_getinfo(remote->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
	curl_easy_getinfo(remote->easy, CURLINFO_REQUEST_SIZE, &head);
	curl_easy_getinfo(remote->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
	/* REQUEST_SIZE includes a small body that went out with the header. */
	if (head > uploaded)
		head -= (long)uploaded;
	remote->sent_bytes += (uint64_t)uploaded + (uint64_t)head;
	*ret_outcome = (struct outcome){
		.code = code,
		.error_text = remote->error_text,
		.answer = answer,
		/* A failed connection after a request: it was for a second attempt. */
		.body_sent = (uint64_t)uploaded >= body_bytes || remote->requests > 1 ||
			     (remote->requests && code == CURLE_COULDNT_CONNECT),
		.proxy_status = proxy_status,
		.retry_after_ns = retry_after_ns(
			answer->retry_after, answer->date, (int64_t)(clock_real_ns() / 1000000000)),
	};
}

void remote_ended(struct remote *remote, CURLcode code)
{
	struct outcome outcome;
	bool other_way;

	certificates_explain(
		&remote->certificates, code, remote->error_text, sizeof(remote->error_text));
	read_outcome(remote, code, &outcome);
	if (verdict_proxy(&outcome, &remote->result)) {
		remote_settle(remote);
		return;
	}
	if (remote->call) {
		remote_call_judge(remote, &outcome, &remote->result);
		remote_settle(remote);
		return;
	}
	other_way = remote->protocol->judge(remote, &outcome, &remote->result);
	/* Tries each way once. If neither works, the next payload starts with the newer one. */
	if (other_way && !remote->has_switched) {
		remote->has_switched = true;
		remote->old_way = !remote->old_way;
		remote->old_way_since_ns = clock_monotonic_ns();
		remote->result = (struct remote_result){ 0 };
		start_or_settle(remote);
		return;
	}
	if (other_way)
		remote->old_way = false;
	remote_settle(remote);
}
