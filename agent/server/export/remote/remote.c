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

#include "agent/server/export/remote/remote_curl.h"
#include "agent/server/export/remote/remote_internal.h"
#include "agent/server/export/remote/retry_after.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/secret_file.h"

/* How long to use the old way before trying the newer one again: servers get upgraded. */
static const uint64_t OLD_WAY_NS = UINT64_C(3600000000000);

/* ---- creating ------------------------------------------------------------------------------ */
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
	return remote_curl_open(remote, o);
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
	remote_curl_close(remote);
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
	err = remote_curl_request(remote, &request);
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
