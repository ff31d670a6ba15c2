/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One remote store: turns a payload into requests of its protocol and judges the answers. Runs on
 * libcurl's multi interface in the thread that calls remotes_run(); it never retries and keeps
 * nothing: both are the queue's business.
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

/* What the rest of the program asks about a kind of store. */
enum remote_property {
	REMOTE_IS_DIRECTORY = 1 << 0, /* the address is a path: no server, no credentials */
	REMOTE_PACED = 1 << 1, /* it refuses bursts: it is sent to slowly */
	REMOTE_UNSTABLE = 1 << 2, /* its protocol still changes: the user has to accept that */
	/* It does no harm with the labels of samples: it does not make series of them. */
	REMOTE_TAKES_SAMPLE_LABELS = 1 << 3,
	REMOTE_WANTS_SAMPLE_LABELS = 1 << 4, /* and keeps them */
	REMOTE_WANTS_FILE_HASHES = 1 << 5, /* of mappings, in the pprof's comments */
	REMOTE_TAKES_DEBUGINFO = 1 << 6, /* it symbolizes by what --debuginfo-upload sends */
};

/* How OTLP is spoken. */
enum remote_way {
	REMOTE_WAY_ANY, /* gRPC; HTTP where the server does not know that */
	REMOTE_WAY_GRPC,
	REMOTE_WAY_HTTP,
};

/* Texts are borrowed for remote_create() only. NULL = not given. */
struct remote_options {
	enum remote_type type;
	const char *name; /* for metrics and logs; never a secret */
	const char *given_name; /* where the user has named it; tells it from others */
	const char *place; /* where the user said all this, for messages */
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
	bool also_system_ca; /* beside the CA file */
	uint64_t timeout_ns; /* of a whole request; 0 = 30 s */
};

enum remote_verdict {
	REMOTE_SENT,
	REMOTE_RETRY, /* it did not arrive: connection failure, 408, 429, 5xx, retryable gRPC codes
		       */
	REMOTE_AMBIGUOUS, /* it may have arrived: time-out or reset after the body was sent; retry
			   */
	REMOTE_REFUSED, /* the server calls the payload bad: never again */
	REMOTE_DENIED, /* credentials or address are wrong: 401, 403, 404, certificate; retry slowly
			*/
};

struct remote_result {
	enum remote_verdict verdict;
	char code[16]; /* for the metric: "200", "grpc_8", "timeout", "certificate", … */
	char message[160]; /* for the log: bounded, printable */
	uint64_t retry_after_ns; /* what the server asked for; 0 = nothing */
	uint64_t sent_bytes; /* on the wire, bodies and headers */
	bool resent; /* within this attempt: it may have arrived twice */
	bool blurred; /* RETRY, but the server may mean the payload: bound the retries */
};

struct remotes; /* the curl multi handle and what is under way */
struct remote;

typedef void remote_done_fn(void *context, const struct remote_result *result);

int remotes_create(struct remotes **ret_remotes);
void remotes_destroy(struct remotes *r); /* after all its remotes */
/* -EINVAL: an option makes no sense, *RET_MESSAGE (the caller's to free) says which. */
int remote_create(struct remotes *r, const struct remote_options *options,
	struct remote **ret_remote, char **ret_message);
const char *remote_type_name(enum remote_type type);
bool remote_type_has(enum remote_type type, enum remote_property property);
int remote_type_find(const char *name, enum remote_type *ret_type); /* -ENOENT */
/* "pyroscope, parca, otlp or file", cut to SIZE. */
void remote_type_list(char *text, size_t size);
/*
 * A text that stays the same as long as OPTIONS mean the same store: its type, address, tenant,
 * user and given name, whatever its credentials and its place among others are. The caller's to
 * free.
 */
int remote_identity(const struct remote_options *options, char **ret_identity, char **ret_message);
void remote_destroy(struct remote *remote); /* what is under way is dropped without a verdict */
/*
 * Sends PAYLOAD (read until DONE is called, exactly once, from remotes_run). One at a time per
 * remote: -EBUSY.
 */
int remote_send(
	struct remote *remote, const struct payload *payload, remote_done_fn *done, void *context);
/* Drives all transfers; returns after TIMEOUT_MS, earlier when something happened or by wakeup. */
int remotes_run(struct remotes *r, int timeout_ms);
/* From any thread. */
void remotes_wakeup(struct remotes *r);
