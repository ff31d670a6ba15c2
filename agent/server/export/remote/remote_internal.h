/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of a remote store:
 *
 *   remotes.c            the multi handle; delivers verdicts
 *   remote_kinds.c       the table of kinds: name, protocol, properties
 *   remote.c             one store: create, send, switch between gRPC and HTTP
 *   remote_curl.c        the options of its handle, and of each request
 *   remote_options.c     validates options; address → base URL
 *   remote_identity.c    the text that identifies a store
 *   remote_credentials.c tokens and passwords, read again when they change; kept out of messages
 *   remote_certificates.c   server CA and client certificates, read again when they change
 *   remote_answer.c      the answer, bounded
 *   retry_after.c        how long a server wants us to wait
 *   remote_verdict.c     answer → verdict
 *   remote_grpc.c        gRPC: a request's message, an answer's status
 *   remote_call.c        requests that are not profiles
 *   remote_pyroscope.c, remote_parca.c, remote_otlp.c, remote_file.c   the protocols
 */
#include <curl/curl.h>

#include "agent/server/export/remote/remote.h"
#include "agent/server/export/remote/remote_call.h"
#include "base/buffer.h"
#include "base/cursor.h"

enum {
	REMOTE_URL_BYTES = 4096, /* signed URLs are long */
	REMOTE_MAX_HEADERS = 32,
	REMOTE_HEADER_BYTES = 8192, /* of one header from the settings */
	REMOTE_SECRET_BYTES = 16 * 1024, /* of a token or password */
	REMOTE_BODY_BYTES = 96 << 20, /* of a request; 64 MiB become 86 in base64 */
	REMOTE_MESSAGE_BYTES = 64 << 20, /* of one gRPC message: Parca's limit */
};

/* ---- what came back ------------------------------------------------------------------------ */
enum {
	ANSWER_BODY_BYTES = 1 << 20, /* no answer of these protocols is longer */
	ANSWER_HEADER_BYTES = 64 << 10,
	ANSWER_KEPT_BYTES = 8192,
};

struct answer {
	long http_status; /* 0 = no answer */
	bool too_long;
	size_t header_bytes, body_bytes;
	int grpc_status; /* -1 = none; from headers or trailers */
	char grpc_message[160]; /* percent-decoded, printable */
	char grpc_details[1024]; /* base64 of a google.rpc.Status; "" = none, or a longer one */
	uint64_t pushback_ns; /* grpc-retry-pushback-ms; 0 = none */
	char retry_after[64], date[64]; /* as received; "" = none */
	char content_type[64];
	char location[160]; /* scheme and host of a redirect, or "" */
	char kept[ANSWER_KEPT_BYTES]; /* the start of the body */
	size_t kept_bytes;
};

void answer_init(struct answer *answer);
/* For CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION, with a struct answer. */
size_t answer_on_header(char *bytes, size_t one, size_t size, void *answer);
size_t answer_on_body(char *bytes, size_t one, size_t size, void *answer);
/* The server's error text: the JSON body's "message", else its first line; printable. */
void answer_message(const struct answer *answer, char *text, size_t size);

/* ---- verdicts ------------------------------------------------------------------------------ */
struct outcome {
	CURLcode code;
	const char *error_text; /* curl's own, "" = none */
	const struct answer *answer;
	bool body_sent; /* all of it was sent */
	long proxy_status; /* of a proxy asked for a tunnel; 0 = none */
	uint64_t retry_after_ns;
};

/* True if the proxy refused the tunnel, so that the server was not reached. */
bool verdict_proxy(const struct outcome *outcome, struct remote_result *result);
/* The transfer ended without a complete answer. */
void verdict_transport(const struct outcome *outcome, struct remote_result *result);
/*
 * True if a complete answer came: RESULT follows from its status. Else RESULT follows from the
 * transfer error.
 */
bool verdict_answer(const struct outcome *outcome, struct remote_result *result);
/* Judges by the HTTP status, which must be set. */
void verdict_http(const struct outcome *outcome, struct remote_result *result);
/* Judges by grpc-status, which must be set. */
void verdict_grpc(const struct outcome *outcome, struct remote_result *result);
bool verdict_is_success(long http_status);
/* The message is made printable and cut to fit. */
void verdict_set(struct remote_result *result, enum remote_verdict verdict, const char *code,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- credentials --------------------------------------------------------------------------- */
struct credentials {
	char *token, *token_file;
	char *user, *password_file;
	char *password; /* content of the file as last read */
};

int credentials_init(struct credentials *c, const struct remote_options *options);
void credentials_deinit(struct credentials *c);
/*
 * Reads the files again; one that cannot be read keeps its last content. If it has none, returns
 * the error, and *RET_WHICH names the file.
 */
int credentials_refresh(struct credentials *c, const char **ret_which);
/* Replaces SECRET in TEXT by asterisks, short secrets too. NULL is no secret. */
void credentials_hide(char *text, const char *secret);

/* ---- certificates -------------------------------------------------------------------------- */
enum { CERTIFICATES_CA, CERTIFICATES_CLIENT, CERTIFICATES_KEY, CERTIFICATES_FILES };

struct certificate_file {
	char *path; /* NULL = none */
	CURLoption option; /* the option for its content */
	struct buffer content; /* as set in libcurl; empty = nothing yet */
};

struct certificates {
	struct certificate_file files[CERTIFICATES_FILES];
};

int certificates_init(struct certificates *c, const struct remote_options *options);
void certificates_deinit(struct certificates *c);
/*
 * Reads the files again and sets what has changed in EASY; one that cannot be read keeps its last
 * content. If it has none, returns the error, and *RET_WHICH names the file.
 */
int certificates_refresh(struct certificates *c, CURL *easy, const char **ret_which);
/* Replaces TEXT by a message that names the file if CODE means that a file is invalid. */
void certificates_explain(const struct certificates *c, CURLcode code, char *text, size_t size);

/* ---- options ------------------------------------------------------------------------------- */
/* The address with scheme, host and port, without a trailing slash. -EINVAL: an option is invalid;
 * *RET_MESSAGE says why. */
int remote_options_check(
	const struct remote_options *options, char url[REMOTE_URL_BYTES], char **ret_message);

/* ---- one store ----------------------------------------------------------------------------- */
struct request {
	char url[REMOTE_URL_BYTES];
	const char *content_type; /* NULL = none */
	bool put; /* the method is PUT, not POST */
	bool grpc; /* HTTP/2 from the first byte, trailers */
	bool gzip; /* the body, or the message in it, is compressed */
};

/*
 * The interface of a kind of store to remote.c. A server has `build` and `judge`; a store without
 * requests has only `write`.
 */
struct protocol {
	const char *server; /* for messages */
	/* Fills remote->body and REQUEST. -E2BIG, -ENOMEM. */
	int (*build)(struct remote *remote, const struct payload *payload, struct request *request);
	/* True if the server does not support this way: try the other one. */
	bool (*judge)(
		struct remote *remote, const struct outcome *outcome, struct remote_result *result);
	/* True if PAYLOAD is refused without asking the server. NULL: never. */
	bool (*refuses)(const struct payload *payload, struct remote_result *result);
	/* Stores PAYLOAD at ADDRESS synchronously. */
	void (*write)(
		const char *address, const struct payload *payload, struct remote_result *result);
};

#define REMOTE_KIND(id, name, object, properties) extern const struct protocol object;
#include "agent/server/export/remote/remote_kinds.def"
#undef REMOTE_KIND

/* remote_kinds.c */
const struct protocol *remote_type_protocol(enum remote_type type);

struct remote {
	struct remotes *owner;
	struct remote *next; /* in the owner's list */
	const struct protocol *protocol;
	char *name;
	char url[REMOTE_URL_BYTES]; /* base URL, or the directory */
	char *proxy_url;
	struct credentials credentials;
	struct certificates certificates;
	char **secrets; /* header values, kept out of messages */
	size_t secret_count;
	CURL *easy; /* NULL: no server */
	struct curl_slist *given_headers, *headers, *connect_to;
	enum remote_way way; /* OTLP: as the user set it */
	bool old_way; /* the server did not support the new way */
	uint64_t old_way_since_ns;
	bool new_way_works, old_way_works; /* it has been answered */
	bool has_switched; /* in this send */
	/* the transfer under way */
	const struct payload *payload; /* NULL: nothing, or a call */
	const struct remote_call *call; /* NULL: nothing, or a payload */
	uint64_t call_off; /* offset in the call's body */
	remote_done_fn *done;
	void *context;
	bool judged; /* `result` is to be delivered by remotes_run() */
	struct remote_result result;
	uint64_t sent_bytes;
	unsigned int requests; /* begun in this transfer */
	struct buffer body;
	struct answer answer;
	char error_text[CURL_ERROR_SIZE];
};

/* ---- gRPC ---------------------------------------------------------------------------------- */
enum { GRPC_PREFIX_BYTES = 5 };

void grpc_prefix(uint8_t prefix[GRPC_PREFIX_BYTES], size_t size);
/*
 * Appends the prefix of a message of SIZE bytes and room for it, which the caller fills. -E2BIG,
 * -ENOMEM.
 */
int grpc_body(struct buffer *body, size_t size, uint8_t **ret_room);
/* METHOD: "package.Service/Method". -E2BIG. */
int grpc_request(const struct remote *remote, const char *method, struct request *request);
/* The message of an answer. False if there is none, or it was not kept completely. */
bool grpc_read_message(
	const struct answer *answer, bool *ret_compressed, struct cursor *ret_message);
/*
 * Judges by grpc-status if there is one. True if the answer shows that the server does not support
 * gRPC or this method.
 */
bool grpc_judge(struct remote *remote, const struct outcome *o, struct remote_result *result);

/* remotes.c */
void remotes_add(struct remotes *r, struct remote *remote); /* adds it to the list */
void remotes_remove(struct remotes *r, struct remote *remote);
int remotes_start(struct remotes *r, struct remote *remote); /* starts its easy handle */

/* remote_call.c */
int remote_call_request(struct remote *remote, struct request *request);
int remote_call_setup(struct remote *remote); /* sets up its easy handle */
void remote_call_judge(
	struct remote *remote, const struct outcome *o, struct remote_result *result);

/* remote.c: its transfer has ended with CODE. */
void remote_ended(struct remote *remote, CURLcode code);
