/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One GET request whose answer is JSON, by libcurl: to a Unix socket; or by TLS, only, with one
 * authority and no other. Redirects are not followed, so that a token goes nowhere else.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/metadata/json_pieces.h"

enum json_call_result {
	CALL_OK,
	CALL_UNREACHABLE, /* no connection, or it broke */
	CALL_TIMEOUT,
	CALL_REFUSED, /* the server says no */
	CALL_EXPIRED, /* it no longer knows what it is asked about: 410 */
	CALL_BUSY, /* later: 429 */
	CALL_NONSENSE,
	CALL_TOO_LARGE,
};

enum { CALL_MESSAGE_BYTES = 300 };

struct json_call {
	CURL *easy; /* NULL = no call under way */
	CURLM *multi;
	struct curl_slist *headers;
	struct json_pieces pieces; /* of the answer; of a refusal: only what it says */
	long status; /* of HTTP; 0 = none yet */
	uint64_t left_bytes; /* of the answer; UINT64_MAX = no limit */
	bool over_limit;
	char error_text[CURL_ERROR_SIZE];
};

struct json_call_options {
	CURLM *multi;
	const char *socket; /* its path; NULL = by TLS */
	const char *url; /* https://…; of a socket: http://localhost/… */
	const char *token, *ca_file; /* of TLS; the file is PEM */
	const char *accept; /* a media type */
	enum json_pieces_form form;
	json_pieces_fn *on_value;
	void *context; /* of on_value */
	size_t value_bytes; /* limit of one value */
	uint64_t answer_bytes; /* limit of the answer; 0 = none */
	uint64_t bytes_per_second; /* 0 = no limit */
	uint64_t timeout_ns; /* of all of it */
};

/* CALL must be zeroed or stopped, and not move. Returns -ENOMEM, also if there is no libcurl. */
int json_call_start(struct json_call *call, const struct json_call_options *options);
/*
 * Call when libcurl says that the transfer has ended with CODE. WHY: a printable sentence if it is
 * not CALL_OK. `pieces` stay until json_call_stop(). *RET_RETRY_S: when the server wants to be
 * asked again; 0 = it does not say.
 */
enum json_call_result json_call_judge(
	struct json_call *call, CURLcode code, char why[CALL_MESSAGE_BYTES], uint64_t *ret_retry_s);
/* Ends the call, if there is one. */
void json_call_stop(struct json_call *call);
