/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One upload from start to end, in the debuginfo thread: ask, strip into an unnamed file, announce
 * it with size and hash, send it, mark it as finished. The server decides where to send it: to
 * itself, as a stream of gRPC messages, or to an object store behind a signed URL, which gets none
 * of our credentials.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/server/export/debuginfo/debuginfo_internal.h"
#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "proto/parca_debuginfo.pb-c.h"

enum {
	CHUNK_BYTES = 1 << 20, /* of file content per message */
	HEAD_BYTES = 512, /* of the stream's first message: two ids */
	CHUNK_HEAD_BYTES = GRPC_PREFIX_BYTES + 1 + 5,
	MESSAGE_BYTES = 64 << 10, /* of one request */
	LONGEST_TURN_MS = 1000,
	FINISH_ATTEMPTS = 3,
};

static const uint64_t CALL_TIMEOUT_NS = UINT64_C(30000000000);
/* Parca's own limit on an upload. */
static const uint64_t UPLOAD_TIMEOUT_NS = UINT64_C(900000000000);
/*
 * Rate during an upload: Parca allows five seconds for a request by default (--http-read-timeout).
 * The pause after it keeps the average low.
 */
static const uint64_t UPLOAD_BYTES_PER_SECOND = 32 << 20;

/* ---- requests ------------------------------------------------------------------------------- */

static void on_done(void *context, const struct remote_result *result)
{
	struct debuginfo *d = context;

	d->result = *result;
	d->answered = true;
}

/* False if the agent is stopping; else the answer is in d->result. */
static bool upload_perform(
	struct debuginfo *d, struct remote *remote, const struct remote_call *call)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	d->answered = false;
	if (remote_call(remote, call, on_done, d))
		return false;
	while (!d->answered) {
		if (debuginfo_stopping(d))
			return false;
		if (remotes_run(d->transport, LONGEST_TURN_MS))
			nanosleep(&pause, NULL); /* out of memory: avoid a busy loop */
	}
	return true;
}

static ssize_t read_buffer(void *context, uint64_t off, void *bytes, size_t room)
{
	const struct buffer *b = context;
	size_t size = MIN(room, b->size - (size_t)off);

	memcpy(bytes, b->bytes + off, size);
	return (ssize_t)size;
}

static int upload_pack(struct buffer *body, const ProtobufCMessage *message)
{
	uint8_t *room;
	int err = grpc_body(body, protobuf_c_message_get_packed_size(message), &room);

	if (!err)
		protobuf_c_message_pack(message, room);
	return err;
}

/*
 * DEBUGINFO_UPLOADED if the call succeeded. Other errors are FAILED: nothing has been started yet.
 */
static enum debuginfo_outcome upload_judge(const struct debuginfo *d)
{
	switch (d->result.verdict) {
	case REMOTE_SENT:
		return DEBUGINFO_UPLOADED;
	case REMOTE_REFUSED:
		return DEBUGINFO_REFUSED;
	default:
		return DEBUGINFO_FAILED;
	}
}

static enum debuginfo_outcome upload_ask(struct debuginfo *d, struct remote *remote,
	const char *method, const ProtobufCMessage *message)
{
	autocall(buffer_deinit) struct buffer body;
	struct remote_call call = {
		.method = method,
		.read = read_buffer,
		.context = &body,
		.timeout_ns = CALL_TIMEOUT_NS,
	};

	buffer_init(&body, MESSAGE_BYTES);
	if (upload_pack(&body, message))
		return DEBUGINFO_FAILED;
	call.size = body.size;
	return upload_perform(d, remote, &call) ? upload_judge(d) : DEBUGINFO_STOPPED;
}

/* An answer that does not follow the protocol. */
static enum debuginfo_outcome junk(struct debuginfo *d)
{
	verdict_set(&d->result, REMOTE_RETRY, "junk", "%s", "the response cannot be read");
	return DEBUGINFO_FAILED;
}

/* ---- whether it is wanted ------------------------------------------------------------------- */

static enum debuginfo_outcome should_upload(
	struct debuginfo *d, const struct debuginfo_job *job, struct remote *remote)
{
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadRequest request =
		PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_REQUEST__INIT;
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadResponse *response;
	enum debuginfo_outcome outcome;
	struct cursor answer;

	request.build_id = (char *)(uintptr_t)job->build_id;
	request.build_id_type = PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GNU;
	outcome = upload_ask(d, remote,
		"parca.debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload", &request.base);
	if (outcome != DEBUGINFO_UPLOADED)
		return outcome;
	answer = remote_call_answer(remote);
	response = answer.bad ? NULL
			      : parca__debuginfo__v1alpha1__should_initiate_upload_response__unpack(
					NULL, cursor_left(&answer), answer.at);
	if (!response)
		return junk(d);
	/* The reason is meant for people, but only it shows that the answer is temporary. */
	if (!response->should_initiate_upload)
		outcome = strstr(response->reason, "in-progress") ? DEBUGINFO_BEING_UPLOADED
								  : DEBUGINFO_NOT_WANTED;
	parca__debuginfo__v1alpha1__should_initiate_upload_response__free_unpacked(response, NULL);
	return outcome;
}

/* ---- sending it ----------------------------------------------------------------------------- */

struct upload {
	struct debuginfo *d;
	struct debuginfo_target *target;
	const struct debuginfo_job *job;
	int fd;
	uint64_t size; /* bytes of the file */
	char hash[DEBUGINFO_HASH_TEXT_BYTES];
	Parca__Debuginfo__V1alpha1__UploadInstructions *instructions;
	struct buffer head; /* the stream's first message */
	bool framed; /* the content is sent as messages, too */
};

/* The bytes before a chunk of SIZE bytes: an UploadRequest with chunk_data, field 2. */
static size_t chunk_head(uint8_t head[CHUNK_HEAD_BYTES], size_t size)
{
	size_t used = GRPC_PREFIX_BYTES;

	head[used++] = 2 << 3 | 2;
	for (size_t left = size; left > 0x7f; left >>= 7)
		head[used++] = (uint8_t)(left | 0x80);
	head[used] = (uint8_t)(size >> 7 * (used - GRPC_PREFIX_BYTES - 1));
	used++;
	grpc_prefix(head, used - GRPC_PREFIX_BYTES + size);
	return used;
}

static uint64_t framed_size(uint64_t size)
{
	uint8_t head[CHUNK_HEAD_BYTES];
	uint64_t rest = size % CHUNK_BYTES;
	uint64_t bytes = size / CHUNK_BYTES * (chunk_head(head, CHUNK_BYTES) + CHUNK_BYTES);

	return bytes + (rest ? chunk_head(head, rest) + rest : 0);
}

/* OFF: offset in the stream of chunks. */
static ssize_t read_framed(const struct upload *u, uint64_t off, void *bytes, size_t room)
{
	uint8_t head[CHUNK_HEAD_BYTES];
	uint64_t whole = chunk_head(head, CHUNK_BYTES) + CHUNK_BYTES;
	uint64_t chunk = off / whole, at = off % whole;
	size_t size = (size_t)MIN((uint64_t)CHUNK_BYTES, u->size - chunk * CHUNK_BYTES);
	size_t head_size = chunk_head(head, size);

	if (at < head_size) {
		room = MIN(room, head_size - at);
		memcpy(bytes, head + at, room);
		return (ssize_t)room;
	}
	at -= head_size;
	room = MIN(room, size - at);
	return pread(u->fd, bytes, room, (off_t)(chunk * CHUNK_BYTES + at));
}

static ssize_t read_upload(void *context, uint64_t off, void *bytes, size_t room)
{
	struct upload *u = context;

	if (off < u->head.size)
		return read_buffer(&u->head, off, bytes, room);
	off -= u->head.size;
	return u->framed ? read_framed(u, off, bytes, room) : pread(u->fd, bytes, room, (off_t)off);
}

static int begin_stream(struct upload *u)
{
	Parca__Debuginfo__V1alpha1__UploadInfo info = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INFO__INIT;
	Parca__Debuginfo__V1alpha1__UploadRequest request =
		PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__INIT;

	info.build_id = (char *)(uintptr_t)u->job->build_id;
	info.upload_id = u->instructions->upload_id;
	request.data_case = PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_REQUEST__DATA_INFO;
	request.info = &info;
	u->framed = true;
	return upload_pack(&u->head, &request.base);
}

static bool all_arrived(const struct upload *u)
{
	struct cursor answer = remote_call_answer(u->target->remote);
	Parca__Debuginfo__V1alpha1__UploadResponse *response =
		answer.bad ? NULL
			   : parca__debuginfo__v1alpha1__upload_response__unpack(
				     NULL, cursor_left(&answer), answer.at);
	bool all = response && response->size == u->size;

	parca__debuginfo__v1alpha1__upload_response__free_unpacked(response, NULL);
	return all;
}

static enum debuginfo_outcome send_stream(struct upload *u)
{
	struct remote_call call = {
		.method = "parca.debuginfo.v1alpha1.DebuginfoService/Upload",
		.read = read_upload,
		.context = u,
		.timeout_ns = UPLOAD_TIMEOUT_NS,
		.bytes_per_second = UPLOAD_BYTES_PER_SECOND,
	};
	enum debuginfo_outcome outcome;

	if (begin_stream(u))
		return DEBUGINFO_FAILED;
	call.size = u->head.size + framed_size(u->size);
	if (!upload_perform(u->d, u->target->remote, &call))
		return DEBUGINFO_STOPPED;
	outcome = upload_judge(u->d);
	if (outcome == DEBUGINFO_UPLOADED && !all_arrived(u))
		outcome = junk(u->d);
	return outcome;
}

/* Scheme, host and port of the signed URL. */
static char *origin_of(const char *url)
{
	const char *host = strstr(url, "://");

	host = host ? host + 3 : url;
	return strndup(url, (size_t)(host - url) + strcspn(host, "/?#"));
}

/* If the server uses TLS, the file must not go anywhere in plain text. */
static bool is_acceptable(const struct upload *u, const char *url)
{
	return !strncmp(url, "https://", 8) ||
	       (u->target->plain_text && !strncmp(url, "http://", 7));
}

static enum debuginfo_outcome send_to_store(struct upload *u)
{
	const char *url = u->instructions->signed_url;
	autofree char *origin = origin_of(url), *message = NULL;
	struct remote_options options = {
		.type = REMOTE_PARCA,
		.name = u->target->name,
		.address = origin,
		.proxy_url = u->target->proxy_url,
		.ca_file = strncmp(url, "https://", 8) ? NULL : u->target->ca_file,
		.also_system_ca = true,
	};
	struct remote_call call = {
		.put_url = url,
		.size = u->size,
		.read = read_upload,
		.context = u,
		.timeout_ns = UPLOAD_TIMEOUT_NS,
		.bytes_per_second = UPLOAD_BYTES_PER_SECOND,
	};
	struct remote *store = NULL;
	bool performed;

	if (!origin || !is_acceptable(u, url) ||
		remote_create(u->d->transport, &options, &store, &message)) {
		verdict_set(&u->d->result, REMOTE_RETRY, "signed_url", "%s",
			message ? message : "the server's signed URL is not used");
		return DEBUGINFO_FAILED;
	}
	performed = upload_perform(u->d, store, &call);
	remote_destroy(store);
	return performed ? upload_judge(u->d) : DEBUGINFO_STOPPED;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* gRPC codes for "somebody else was faster". */
static enum debuginfo_outcome judge_initiate(
	const struct debuginfo *d, enum debuginfo_outcome outcome)
{
	if (outcome == DEBUGINFO_REFUSED && !strcmp(d->result.code, "grpc_6"))
		return DEBUGINFO_NOT_WANTED;
	if (outcome == DEBUGINFO_REFUSED && !strcmp(d->result.code, "grpc_9"))
		return DEBUGINFO_BEING_UPLOADED;
	return outcome;
}

static enum debuginfo_outcome initiate(
	struct upload *u, Parca__Debuginfo__V1alpha1__InitiateUploadResponse **ret_response)
{
	Parca__Debuginfo__V1alpha1__InitiateUploadRequest request =
		PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_REQUEST__INIT;
	struct remote *remote = u->target->remote;
	enum debuginfo_outcome outcome;
	struct cursor answer;

	request.build_id = (char *)(uintptr_t)u->job->build_id;
	request.build_id_type = PARCA__DEBUGINFO__V1ALPHA1__BUILD_IDTYPE__BUILD_ID_TYPE_GNU;
	request.size = (int64_t)u->size;
	request.hash = u->hash;
	outcome = upload_ask(u->d, remote,
		"parca.debuginfo.v1alpha1.DebuginfoService/InitiateUpload", &request.base);
	if (outcome != DEBUGINFO_UPLOADED)
		return judge_initiate(u->d, outcome);
	answer = remote_call_answer(remote);
	if (!answer.bad)
		*ret_response = parca__debuginfo__v1alpha1__initiate_upload_response__unpack(
			NULL, cursor_left(&answer), answer.at);
	if (!*ret_response || !(*ret_response)->upload_instructions)
		return junk(u->d);
	return outcome;
}

static enum debuginfo_outcome upload_finish(struct upload *u)
{
	Parca__Debuginfo__V1alpha1__MarkUploadFinishedRequest request =
		PARCA__DEBUGINFO__V1ALPHA1__MARK_UPLOAD_FINISHED_REQUEST__INIT;
	const struct timespec pause = { .tv_sec = 1 };
	enum debuginfo_outcome outcome = DEBUGINFO_FAILED;

	request.build_id = (char *)(uintptr_t)u->job->build_id;
	request.upload_id = u->instructions->upload_id;
	/* Everything was sent, so retry. Repeating the call is harmless. */
	for (int i = 0; i < FINISH_ATTEMPTS && outcome == DEBUGINFO_FAILED; i++) {
		if (i)
			nanosleep(&pause, NULL);
		outcome = upload_ask(u->d, u->target->remote,
			"parca.debuginfo.v1alpha1.DebuginfoService/MarkUploadFinished",
			&request.base);
	}
	return outcome;
}

static enum debuginfo_outcome send_and_finish(struct upload *u)
{
	enum debuginfo_outcome outcome;

	buffer_init(&u->head, HEAD_BYTES);
	switch (u->instructions->upload_strategy) {
	case PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__UPLOAD_STRATEGY__UPLOAD_STRATEGY_GRPC:
		outcome = send_stream(u);
		break;
	case PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__UPLOAD_STRATEGY__UPLOAD_STRATEGY_SIGNED_URL:
		outcome = send_to_store(u);
		break;
	default:
		return DEBUGINFO_NOT_WANTED;
	}
	buffer_deinit(&u->head);
	if (outcome == DEBUGINFO_UPLOADED)
		outcome = upload_finish(u);
	return outcome == DEBUGINFO_FAILED ? DEBUGINFO_BROKEN_OFF : outcome;
}

static enum debuginfo_outcome send_file(struct upload *u)
{
	Parca__Debuginfo__V1alpha1__InitiateUploadResponse *response = NULL;
	enum debuginfo_outcome outcome;

	if (debuginfo_hash(u->fd, u->hash, &u->size) || !u->size)
		return DEBUGINFO_UNREADABLE;
	outcome = initiate(u, &response);
	if (outcome == DEBUGINFO_UPLOADED) {
		u->instructions = response->upload_instructions;
		outcome = send_and_finish(u);
	}
	parca__debuginfo__v1alpha1__initiate_upload_response__free_unpacked(response, NULL);
	u->d->sent_bytes = u->size;
	if (outcome == DEBUGINFO_UPLOADED)
		metrics_add(u->d->metrics, METRIC_DEBUGINFO_UPLOADED_BYTES, u->size);
	return outcome;
}

enum debuginfo_outcome debuginfo_upload(struct debuginfo *d, const struct debuginfo_job *job)
{
	struct debuginfo_target *target = &d->targets[job->target];
	enum debuginfo_outcome outcome = should_upload(d, job, target->remote);
	autoclose int fd = -1;

	if (outcome == DEBUGINFO_UPLOADED)
		outcome = debuginfo_strip(d, job, &fd);
	if (outcome != DEBUGINFO_UPLOADED)
		return outcome;
	return send_file(&(struct upload){ .d = d, .target = target, .job = job, .fd = fd });
}
