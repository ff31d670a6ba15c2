/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a hostile server: lines up to an empty one are headers, the rest is the body. */
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "agent/server/export/remote/retry_after.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size || !utf8_is_clean(text, length))
		abort();
}

static void judge(const struct answer *answer)
{
	struct outcome outcome = {
		.code = CURLE_OK, .error_text = "", .answer = answer, .body_sent = true
	};
	struct remote_result result = { 0 };

	verdict_http(&outcome, &result);
	check_text(result.code, sizeof(result.code));
	if (answer->grpc_status >= 0)
		verdict_grpc(&outcome, &result);
	outcome.code = CURLE_RECV_ERROR;
	verdict_transport(&outcome, &result);
	check_text(result.code, sizeof(result.code));
}

static void judge_otlp(const struct answer *answer, enum remote_way way)
{
	struct outcome outcome = {
		.code = CURLE_OK, .error_text = "", .answer = answer, .body_sent = true
	};
	struct remote_result result = { 0 };
	struct remote *remote = calloc(1, sizeof(*remote));

	if (!remote)
		abort();
	remote->protocol = &remote_otlp;
	remote->way = way;
	remote_otlp.judge(remote, &outcome, &result);
	check_text(result.code, sizeof(result.code));
	check_text(result.message, sizeof(result.message));
	free(remote);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answer answer;
	char message[160];

	answer_init(&answer);
	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) + 1 : size;
		/* A copy of its own, so that sanitizers see reads past its end. */
		char *line = malloc(length);

		if (!line)
			abort();
		memcpy(line, data, length);
		answer_on_header(line, 1, length, &answer);
		free(line);
		data += length;
		size -= length;
		if (length == 1)
			break;
	}
	if (size)
		answer_on_body((char *)data, 1, size, &answer);
	if (retry_after_ns(answer.retry_after, answer.date, 0) > RETRY_AFTER_LONGEST_NS)
		abort();
	answer_message(&answer, message, sizeof(message));
	check_text(message, sizeof(message));
	check_text(answer.content_type, sizeof(answer.content_type));
	judge(&answer);
	judge_otlp(&answer, REMOTE_WAY_HTTP);
	judge_otlp(&answer, REMOTE_WAY_GRPC);
	return 0;
}
