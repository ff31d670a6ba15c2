/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One GET request to the API server, by libcurl: TLS only, with the cluster's authority and no
 * other, and no redirects, so that the token goes nowhere else.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/metadata/kubernetes/json_pieces.h"

enum api_result {
	API_OK,
	API_UNREACHABLE, /* no connection, or it broke */
	API_TIMEOUT,
	API_REFUSED, /* the server says no */
	API_EXPIRED, /* it no longer knows what it is asked about: 410 */
	API_BUSY, /* later: 429 */
	API_NONSENSE,
	API_TOO_LARGE,
};

enum { API_MESSAGE_BYTES = 300, API_URL_BYTES = 16 << 10 };

struct api_call {
	CURL *easy; /* NULL = no call under way */
	CURLM *multi;
	struct curl_slist *headers;
	struct json_pieces pieces; /* of the answer; of a refusal: only what it says */
	long status; /* of HTTP; 0 = none yet */
	uint64_t left_bytes; /* of the answer; UINT64_MAX = no limit */
	bool over_limit;
	char error_text[CURL_ERROR_SIZE];
};

struct api_call_options {
	CURLM *multi;
	const char *url; /* https://… */
	const char *token;
	const char *ca_file; /* PEM */
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
int api_call_start(struct api_call *call, const struct api_call_options *options);
/*
 * Call when libcurl says that the transfer has ended with CODE. WHY: a printable sentence if it is
 * not API_OK. `pieces` stay until api_call_stop(). *RET_RETRY_S: when the server wants to be asked
 * again; 0 = it does not say.
 */
enum api_result api_call_judge(
	struct api_call *call, CURLcode code, char why[API_MESSAGE_BYTES], uint64_t *ret_retry_s);
/* Ends the call, if there is one. */
void api_call_stop(struct api_call *call);
