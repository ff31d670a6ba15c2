/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One gRPC call to a container runtime: HTTP/2 without TLS on a Unix socket, by libcurl. Requests
 * are empty. Connections are not reused: libcurl 7.88 cannot, after HTTP/2 in plain text.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/metadata/grpc_frames.h"

enum cri_result {
	CRI_OK,
	CRI_UNREACHABLE, /* no connection, or it broke */
	CRI_TIMEOUT,
	CRI_REFUSED, /* the runtime says no */
	CRI_NONSENSE,
	CRI_TOO_LARGE,
};

enum { CRI_MESSAGE_BYTES = 200 };

struct cri_call {
	CURL *easy; /* NULL = no call under way */
	CURLM *multi;
	struct curl_slist *headers;
	struct grpc_frames frames;
	int grpc_status; /* -1 = none */
	char grpc_message[CRI_MESSAGE_BYTES]; /* printable */
	char error_text[CURL_ERROR_SIZE];
};

struct cri_call_options {
	CURLM *multi;
	const char *socket;
	const char *method; /* of runtime.v1.RuntimeService */
	bool is_stream; /* an answer without end; its messages are counted only */
	uint64_t timeout_ns; /* of all of it; 0 = none */
	uint64_t bytes_per_second; /* 0 = no limit */
	uint32_t limit_bytes; /* of one message */
};

/* CALL must be zeroed or stopped. Returns -ENOMEM, also if there is no libcurl. */
int cri_call_start(struct cri_call *call, const struct cri_call_options *options);
/*
 * Call when libcurl says that the transfer has ended with CODE. WHY: a printable sentence if it is
 * not CRI_OK. The answer is in `frames` until cri_call_stop().
 */
enum cri_result cri_call_judge(struct cri_call *call, CURLcode code, char why[CRI_MESSAGE_BYTES]);
/* Ends the call, if there is one, and frees its answer. */
void cri_call_stop(struct cri_call *call);
