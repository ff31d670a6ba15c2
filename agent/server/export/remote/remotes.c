/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"

enum { MAX_CONNECTIONS = 16 }; /* kept open, for all stores */

struct remotes {
	CURLM *multi;
	struct remote *first;
};

int remotes_create(struct remotes **ret_remotes)
{
	struct remotes *r;

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	r = calloc(1, sizeof(*r));
	if (r)
		r->multi = curl_multi_init();
	if (!r || !r->multi) {
		remotes_destroy(r);
		return -ENOMEM;
	}
	curl_multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, (long)MAX_CONNECTIONS);
	*ret_remotes = r;
	return 0;
}

void remotes_destroy(struct remotes *r)
{
	if (!r)
		return;
	if (r->multi)
		curl_multi_cleanup(r->multi);
	free(r);
}

void remotes_add(struct remotes *r, struct remote *remote)
{
	remote->next = r->first;
	r->first = remote;
}

void remotes_remove(struct remotes *r, struct remote *remote)
{
	if (remote->easy)
		curl_multi_remove_handle(r->multi, remote->easy);
	for (struct remote **at = &r->first; *at; at = &(*at)->next) {
		if (*at == remote) {
			*at = remote->next;
			return;
		}
	}
}

int remotes_start(struct remotes *r, struct remote *remote)
{
	return curl_multi_add_handle(r->multi, remote->easy) == CURLM_OK ? 0 : -ENOMEM;
}

static void remotes_collect_ended(struct remotes *r)
{
	struct remote *remote;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(r->multi, &left)) != NULL) {
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		remote = NULL;
		curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&remote);
		curl_multi_remove_handle(r->multi, easy);
		if (remote)
			remote_ended(remote, code);
	}
}

/*
 * Delivers one verdict. The callback may send the next payload or destroy the store: do not touch
 * the store afterwards.
 */
static bool hand_out_one(struct remotes *r)
{
	struct remote *remote = r->first;
	struct remote_result result;

	while (remote && !remote->judged)
		remote = remote->next;
	if (!remote)
		return false;
	result = remote->result;
	remote->judged = false;
	remote->payload = NULL;
	remote->call = NULL;
	remote->done(remote->context, &result);
	return true;
}

/* Bounded: a queue whose payloads are all refused at once would keep us here. */
static bool hand_out(struct remotes *r)
{
	enum { AT_ONCE = 64 };
	int count = 0;

	while (count < AT_ONCE && hand_out_one(r))
		count++;
	return count > 0;
}

static int remotes_perform(struct remotes *r)
{
	int running;

	if (curl_multi_perform(r->multi, &running) != CURLM_OK)
		return -ENOMEM;
	remotes_collect_ended(r);
	return 0;
}

int remotes_run(struct remotes *r, int timeout_ms)
{
	int err = remotes_perform(r);

	if (err || hand_out(r))
		return err;
	if (curl_multi_poll(r->multi, NULL, 0, timeout_ms, NULL) != CURLM_OK)
		return -ENOMEM;
	err = remotes_perform(r);
	if (!err)
		hand_out(r);
	return err;
}

void remotes_wakeup(struct remotes *r)
{
	curl_multi_wakeup(r->multi);
}
