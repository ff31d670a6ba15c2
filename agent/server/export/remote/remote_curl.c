/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of a store's easy handle: headers, TLS, proxy, limits. Most are set once; those that
 * depend on the request or on files that may be replaced are set again for each request.
 */
#include "agent/server/export/remote/remote_curl.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/version.h"

enum { CONNECT_TIMEOUT_MS = 10000 };

static const uint64_t DEFAULT_TIMEOUT_NS = UINT64_C(30000000000);

/* ---- for the handle's whole life ----------------------------------------------------------- */
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

int remote_curl_open(struct remote *remote, const struct remote_options *o)
{
	int err;

	remote->easy = curl_easy_init();
	if (!remote->easy)
		return -ENOMEM;
	err = keep_headers(remote, o);
	if (!err)
		err = setup_transfer(remote, o);
	return err ? err : setup_tls(remote, o);
}

void remote_curl_close(struct remote *remote)
{
	curl_easy_cleanup(remote->easy);
	curl_slist_free_all(remote->headers);
	curl_slist_free_all(remote->given_headers);
	curl_slist_free_all(remote->connect_to);
	for (size_t i = 0; i < remote->secret_count; i++)
		free(remote->secrets[i]);
	free(remote->secrets);
}

/* ---- for one request ----------------------------------------------------------------------- */
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

int remote_curl_request(struct remote *remote, const struct request *request)
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
