/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One remote store: turns a payload into requests of its protocol and judges the answers. Runs on
 * libcurl's multi interface in the thread that calls remotes_run(). It never retries and keeps
 * nothing: the queue does both.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"

/* REMOTE_PYROSCOPE and so on: the rows of remote_kinds.def. */
enum remote_type {
#define REMOTE_KIND(id, ...) REMOTE_##id,
#include "agent/server/export/remote/remote_kinds.def"
#undef REMOTE_KIND
};

/* What other code needs to know about a kind of store. */
enum remote_property {
	REMOTE_IS_DIRECTORY = 1 << 0, /* the address is a path: no server, no credentials */
	REMOTE_PACED = 1 << 1, /* it refuses bursts: limit the rate */
	REMOTE_UNSTABLE = 1 << 2, /* its protocol may change: the user has to opt in */
	/* It accepts labels of samples: it does not make series of them. */
	REMOTE_TAKES_SAMPLE_LABELS = 1 << 3,
	REMOTE_WANTS_SAMPLE_LABELS = 1 << 4, /* and stores them */
	REMOTE_WANTS_FILE_HASHES = 1 << 5, /* of mappings, in the pprof comments */
	REMOTE_WANTS_SPANS = 1 << 7, /* of sample labels it takes those by which it finds spans */
	REMOTE_TAKES_DEBUGINFO = 1 << 6, /* it symbolizes with what --debuginfo-upload sends */
};

/* Transport of OTLP. */
enum remote_way {
	REMOTE_WAY_ANY, /* gRPC, or HTTP if the server does not support that */
	REMOTE_WAY_GRPC,
	REMOTE_WAY_HTTP,
};

/* Texts are borrowed for remote_create() only. NULL = not given. */
struct remote_options {
	enum remote_type type;
	const char *name; /* for metrics and logs; never a secret */
	const char *given_name; /* set by the user, NULL = none; distinguishes it from others */
	const char *place; /* where these settings are, for messages */
	const char *address; /* https://host:port/path, http://…, host:port (TLS unless INSECURE) */
	const char *bearer_token, *bearer_token_file; /* the file is read again when it changes */
	const char *basic_auth_user, *basic_auth_password_file;
	const char *ca_file, *client_cert, *client_key, *server_name;
	const char *const *headers; /* "Name: value" */
	size_t header_count;
	const char *tenant_id; /* X-Scope-OrgID */
	const char *proxy_url;
	enum remote_way way; /* of REMOTE_OTLP */
	bool insecure; /* plain text */
	bool insecure_skip_verify;
	bool also_system_ca; /* in addition to the CA file */
	uint64_t timeout_ns; /* of a whole request; 0 = 30 s */
};

enum remote_verdict {
	REMOTE_SENT,
	/* did not arrive: connection failure, 408, 429, most 5xx, retryable gRPC codes */
	REMOTE_RETRY,
	/* may have arrived: timeout or reset after the body was sent, 502, 504; retry */
	REMOTE_AMBIGUOUS,
	REMOTE_REFUSED, /* the server calls the payload invalid: do not retry */
	REMOTE_DENIED, /* wrong credentials or address: 401, 403, 404, certificate; retry slowly */
};

struct remote_result {
	enum remote_verdict verdict;
	char code[16]; /* for the metric: "200", "grpc_8", "timeout", "certificate", … */
	char message[160]; /* for the log: bounded, printable */
	uint64_t retry_after_ns; /* requested by the server; 0 = none */
	uint64_t sent_bytes; /* on the wire, bodies and headers */
	bool resent; /* within this attempt: it may have arrived twice */
	bool blurred; /* RETRY, but the payload may be the cause: bound the retries */
};

struct remotes; /* the curl multi handle and the transfers */
struct remote;

typedef void remote_done_fn(void *context, const struct remote_result *result);

int remotes_create(struct remotes **ret_remotes);
void remotes_destroy(struct remotes *r); /* destroy its remotes first */
/* -EINVAL: invalid option; *RET_MESSAGE (the caller's to free) says which. */
int remote_create(struct remotes *r, const struct remote_options *options,
	struct remote **ret_remote, char **ret_message);
const char *remote_type_name(enum remote_type type);
bool remote_type_has(enum remote_type type, enum remote_property property);
int remote_type_find(const char *name, enum remote_type *ret_type); /* -ENOENT */
/* "pyroscope, parca, otlp or file", cut to SIZE. */
void remote_type_list(char *text, size_t size);
/*
 * A text that identifies the store: its type, address, tenant, user and given name, independent of
 * its credentials and its place among others. The caller's to free.
 */
int remote_identity(const struct remote_options *options, char **ret_identity, char **ret_message);
void remote_destroy(struct remote *remote); /* a transfer under way ends without a verdict */
/*
 * Sends PAYLOAD, which must stay valid until DONE is called, exactly once, from remotes_run().
 * -EBUSY: a transfer of this remote is under way.
 */
int remote_send(
	struct remote *remote, const struct payload *payload, remote_done_fn *done, void *context);
/* Drives all transfers; returns after TIMEOUT_MS, or earlier on an event or wakeup. */
int remotes_run(struct remotes *r, int timeout_ms);
/* Makes remotes_run() return early. May be called from any thread. */
void remotes_wakeup(struct remotes *r);
