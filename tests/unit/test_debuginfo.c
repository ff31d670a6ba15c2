/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads of debug information to a misbehaving server of Parca's protocol. Each gRPC request comes
 * on its own connection: ask, initiate, upload, finish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "agent/server/export/debuginfo/debuginfo.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "proto/parca_debuginfo.pb-c.h"
#include "tests/unit/elf_writer.h"
#include "tests/unit/fault_server.h"

enum {
	H2_DATA = 0,
	PREFIX = 5,
	CHUNK = 1 << 20,
	PATIENCE_MS = 60000,
	QUEUE = 64,
};

enum step { ASK = 1, INITIATE, UPLOAD, FINISH };

static const char build_id[] = "0102030405060708090a0b0c0d0e0f1011121314";
static const struct build_id id = { 20,
	{ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 } };

static const char other_build_id[] = "ffff";
static const struct build_id other_id = { 2, { 0xff, 0xff } };

/* ---- the server ------------------------------------------------------------------------------ */
struct parca {
	/* Which request fails, and how. */
	enum step at;
	const char *grpc_status, *http_status;
	bool reset; /* in the middle of the request */
	bool junk, overlong; /* instead of the answer */
	bool no, in_progress; /* to the first question */
	unsigned int others; /* first questions, about a file of which no more is heard */
	uint64_t lie; /* added to the size that the server claims to have received */
	const char *signed_url;
	unsigned int passed; /* of them */
	/* What was received. */
	unsigned int steps; /* bits */
	int64_t announced;
	char hash[64];
	struct buffer file;
};

static const uint8_t *message_of(const struct fault_request *r, size_t *ret_size)
{
	if (r->body_size < PREFIX || r->body[0])
		abort();
	*ret_size = (size_t)r->body[1] << 24 | (size_t)r->body[2] << 16 | (size_t)r->body[3] << 8 |
		    r->body[4];
	if (*ret_size != r->body_size - PREFIX)
		abort();
	return r->body + PREFIX;
}

static size_t answer_ask(struct parca *p, const struct fault_request *r, uint8_t *out)
{
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__SHOULD_INITIATE_UPLOAD_RESPONSE__INIT;
	size_t size;
	const uint8_t *bytes = message_of(r, &size);
	const char *expected = p->others ? other_build_id : build_id;
	Parca__Debuginfo__V1alpha1__ShouldInitiateUploadRequest *request =
		parca__debuginfo__v1alpha1__should_initiate_upload_request__unpack(
			NULL, size, bytes);

	if (!request || strcmp(request->build_id, expected) || request->build_id_type != 1)
		abort();
	parca__debuginfo__v1alpha1__should_initiate_upload_request__free_unpacked(request, NULL);
	response.should_initiate_upload = !p->no;
	response.reason = p->in_progress ? "A previous upload is still in-progress" : "Because.";
	return parca__debuginfo__v1alpha1__should_initiate_upload_response__pack(&response, out);
}

static size_t answer_initiate(struct parca *p, const struct fault_request *r, uint8_t *out)
{
	Parca__Debuginfo__V1alpha1__InitiateUploadResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__INITIATE_UPLOAD_RESPONSE__INIT;
	Parca__Debuginfo__V1alpha1__UploadInstructions instructions =
		PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_INSTRUCTIONS__INIT;
	size_t size;
	const uint8_t *bytes = message_of(r, &size);
	Parca__Debuginfo__V1alpha1__InitiateUploadRequest *request =
		parca__debuginfo__v1alpha1__initiate_upload_request__unpack(NULL, size, bytes);

	if (!request || strcmp(request->build_id, build_id))
		abort();
	p->announced = request->size;
	snprintf(p->hash, sizeof(p->hash), "%s", request->hash);
	parca__debuginfo__v1alpha1__initiate_upload_request__free_unpacked(request, NULL);
	instructions.build_id = (char *)(uintptr_t)build_id;
	instructions.upload_id = "the-upload";
	instructions.upload_strategy = p->signed_url ? 2 : 1;
	instructions.signed_url = p->signed_url ? (char *)(uintptr_t)p->signed_url : "";
	response.upload_instructions = &instructions;
	return parca__debuginfo__v1alpha1__initiate_upload_response__pack(&response, out);
}

/* All messages of the stream: the first names the upload, the others are the file. */
static size_t answer_upload(struct parca *p, const struct fault_request *r, uint8_t *out)
{
	Parca__Debuginfo__V1alpha1__UploadResponse response =
		PARCA__DEBUGINFO__V1ALPHA1__UPLOAD_RESPONSE__INIT;

	buffer_deinit(&p->file);
	buffer_init(&p->file, FAULT_REQUEST_BYTES);
	for (size_t at = 0, number = 0; at < r->body_size; number++) {
		const uint8_t *head = r->body + at;
		size_t size = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 |
			      head[4];
		Parca__Debuginfo__V1alpha1__UploadRequest *request;

		if (head[0] || at + PREFIX + size > r->body_size)
			abort();
		request = parca__debuginfo__v1alpha1__upload_request__unpack(
			NULL, size, head + PREFIX);
		if (!request || (number == 0) != (request->data_case == 1) ||
			(number == 0 && strcmp(request->info->upload_id, "the-upload")) ||
			(number && request->chunk_data.len > CHUNK))
			abort();
		if (number)
			buffer_append(&p->file, request->chunk_data.data, request->chunk_data.len);
		parca__debuginfo__v1alpha1__upload_request__free_unpacked(request, NULL);
		at += PREFIX + size;
	}
	response.build_id = (char *)(uintptr_t)build_id;
	response.size = p->file.size + p->lie;
	return parca__debuginfo__v1alpha1__upload_response__pack(&response, out);
}

static size_t answer_finish(const struct fault_request *r)
{
	size_t size;
	const uint8_t *bytes = message_of(r, &size);
	Parca__Debuginfo__V1alpha1__MarkUploadFinishedRequest *request =
		parca__debuginfo__v1alpha1__mark_upload_finished_request__unpack(NULL, size, bytes);

	if (!request || strcmp(request->build_id, build_id) ||
		strcmp(request->upload_id, "the-upload"))
		abort();
	parca__debuginfo__v1alpha1__mark_upload_finished_request__free_unpacked(request, NULL);
	return 0;
}

static size_t answer(
	struct parca *p, enum step step, const struct fault_request *r, uint8_t out[4096])
{
	switch (step) {
	case ASK:
		return answer_ask(p, r, out);
	case INITIATE:
		return answer_initiate(p, r, out);
	case UPLOAD:
		return answer_upload(p, r, out);
	case FINISH:
		return answer_finish(r);
	}
	abort();
}

static void send_message(
	struct fault_connection *c, uint32_t stream, const uint8_t *bytes, size_t size)
{
	uint8_t frame[PREFIX + 4096] = { 0, (uint8_t)(size >> 24), (uint8_t)(size >> 16),
		(uint8_t)(size >> 8), (uint8_t)size };

	memcpy(frame + PREFIX, bytes, size);
	fault_h2_frame(c, H2_DATA, 0, stream, frame, PREFIX + size);
}

/* Sends more than any client reads of an answer. */
static void send_overlong(struct fault_connection *c, uint32_t stream)
{
	static const uint8_t zeros[16384];

	for (int i = 0; i < 100 && fault_h2_frame(c, H2_DATA, 0, stream, zeros, sizeof(zeros)); i++)
		;
}

static void respond(struct fault_connection *c, struct parca *p, enum step step,
	const struct fault_request *r, uint32_t stream)
{
	bool here = p->at == step;
	const struct fault_header head[] = {
		{ ":status", here && p->http_status ? p->http_status : "200" },
		{ "content-type", "application/grpc" },
	};
	const struct fault_header trailer = { "grpc-status",
		here && p->grpc_status ? p->grpc_status : "0" };
	uint8_t out[4096] = { 0xff, 0xff, 0xff };
	size_t size = answer(p, step, r, out);

	/* A gateway's HTTP error carries no gRPC status. */
	fault_h2_headers(c, stream, head, ARRAY_SIZE(head), here && p->http_status);
	if (here && p->http_status) {
		fault_wait_for_end(c);
		return;
	}
	if (here && p->overlong) {
		send_overlong(c, stream);
	} else if (here && p->junk) {
		memset(out, 0xff, 20);
		send_message(c, stream, out, 20);
	} else {
		send_message(c, stream, out, size);
	}
	fault_h2_headers(c, stream, &trailer, 1, true);
	fault_wait_for_end(c);
}

static void serve(struct fault_connection *c)
{
	struct parca *p = c->context;
	enum step step = p->others ? ASK : (enum step)(c->number - p->passed);
	struct fault_request r = { 0 };
	uint32_t stream;

	/* An upload to a signed URL replaces the third request. */
	if (p->signed_url && step == UPLOAD)
		step = FINISH;
	p->steps |= 1u << step;
	if (p->at == step && p->reset) {
		fault_h2_read_window(c, &stream);
		fault_reset(c);
		return;
	}
	if (fault_h2_read_request(c, &r, &stream))
		respond(c, p, step, &r, stream);
	free(r.body);
	if (p->others) {
		p->others--;
		p->passed++;
	}
}

/* ---- a run ------------------------------------------------------------------------------------
 */
struct run {
	struct parca parca;
	struct fault_server *server;
	struct metrics metrics;
	struct debuginfo *debuginfo;
	char directory[64], address[64];
	size_t size; /* of what strip() writes */
	int strip_error;
	bool strip_waits; /* for the end */
};

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static int strip(void *context, int elf_fd, int output_fd, int stop_fd)
{
	struct run *run = context;
	autofree uint8_t *bytes = malloc(run->size + 1);
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };
	char first;

	if (pread(elf_fd, &first, 1, 0) == 1 && first == 'H')
		return -ETIMEDOUT;
	if (first != 'E')
		return -EBADMSG;
	if (run->strip_waits)
		return poll(&stop, 1, PATIENCE_MS) == 1 ? -ECANCELED : -EIO;
	for (size_t i = 0; i < run->size; i++)
		bytes[i] = byte_at(i);
	return run->strip_error ? run->strip_error : io_write_all(output_fd, bytes, run->size);
}

static void open_run(struct run *run)
{
	struct remote_options remote = { .type = REMOTE_PARCA,
		.name = "parca",
		.address = run->address,
		.bearer_token = "geheim" };
	char *message = NULL;

	assert_int_equal(debuginfo_create(
				 &(struct debuginfo_options){
					 .remotes = &remote,
					 .remote_count = 1,
					 .directory = run->directory,
					 .strip = strip,
					 .context = run,
					 .metrics = &run->metrics,
				 },
				 &run->debuginfo, &message),
		0);
}

static void begin(struct run *run, bool server)
{
	unsetenv("http_proxy");
	unsetenv("all_proxy");
	snprintf(run->directory, sizeof(run->directory), "/tmp/test-debuginfo-XXXXXX");
	assert_non_null(mkdtemp(run->directory));
	buffer_init(&run->parca.file, FAULT_REQUEST_BYTES);
	if (server)
		run->server = fault_server_start(serve, &run->parca, NULL);
	snprintf(run->address, sizeof(run->address), "http://127.0.0.1:%d",
		server ? fault_server_port(run->server) : fault_free_port());
	if (!run->size)
		run->size = 1000;
	open_run(run);
}

static void end(struct run *run)
{
	char path[96];

	debuginfo_destroy(run->debuginfo);
	fault_server_stop(run->server);
	buffer_deinit(&run->parca.file);
	snprintf(path, sizeof(path), "%s/debuginfo-known", run->directory);
	unlink(path);
	assert_int_equal(rmdir(run->directory), 0); /* nothing else is left there */
}

static void offer(struct run *run)
{
	assert_true(debuginfo_wants(run->debuginfo, &id));
	debuginfo_offer(run->debuginfo, &id, memory_file("ELF", 3));
}

/* Waits until that many files have had this outcome. */
static void wait_for(struct run *run, enum metric metric, uint64_t count)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int ms = 0; metrics_get(&run->metrics, metric) < count; ms++) {
		if (ms == PATIENCE_MS)
			fail_msg("%s{%s} is %d", metric_texts[metric].name,
				metric_texts[metric].label,
				(int)metrics_get(&run->metrics, metric));
		nanosleep(&pause, NULL);
	}
}

/* The outcome is counted a moment before the file leaves the queue. */
static void wait_until_idle(struct run *run)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int ms = 0; debuginfo_pending(run->debuginfo); ms++) {
		assert_true(ms < PATIENCE_MS);
		nanosleep(&pause, NULL);
	}
}

/* Uploads one file; its outcome is counted as METRIC and as nothing else. */
static void run_one(struct run *run, enum metric metric)
{
	begin(run, true);
	offer(run);
	wait_for(run, metric, 1);
	for (enum metric m = METRIC_DEBUGINFO_UPLOADED; m <= METRIC_DEBUGINFO_FAILED; m++)
		assert_int_equal(metrics_get(&run->metrics, m), m == metric);
}

static unsigned int steps_up_to(enum step last)
{
	return (2u << last) - 2;
}

static void assert_file(const struct run *run)
{
	assert_int_equal(run->parca.file.size, run->size);
	for (size_t i = 0; i < run->size; i++) {
		if (run->parca.file.bytes[i] != byte_at(i))
			fail_msg("byte %zu differs", i);
	}
}

/* ---- what goes well ---------------------------------------------------------------------------
 */
static void a_file_is_uploaded_in_order(void **state)
{
	/* Less than a message, exactly one, several, and a last one whose length is short. */
	static const size_t sizes[] = { 1, 127, 128, 20000, CHUNK - 1, CHUNK, CHUNK + 1,
		3 * CHUNK + 100 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct run run = { .size = sizes[i] };

		run_one(&run, METRIC_DEBUGINFO_UPLOADED);
		assert_file(&run);
		assert_int_equal(run.parca.announced, sizes[i]);
		assert_int_equal(strlen(run.parca.hash), 16);
		assert_int_equal(run.parca.steps, steps_up_to(FINISH));
		assert_int_equal(
			metrics_get(&run.metrics, METRIC_DEBUGINFO_UPLOADED_BYTES), sizes[i]);
		end(&run);
	}
}

static void a_file_is_uploaded_once_and_remembered(void **state)
{
	struct run run = { 0 };

	(void)state;
	run_one(&run, METRIC_DEBUGINFO_UPLOADED);
	wait_until_idle(&run);
	assert_false(debuginfo_wants(run.debuginfo, &id));
	debuginfo_offer(run.debuginfo, &id, memory_file("ELF", 3));
	assert_int_equal(debuginfo_pending(run.debuginfo), 0);
	/* Also after a restart. */
	debuginfo_destroy(run.debuginfo);
	open_run(&run);
	assert_false(debuginfo_wants(run.debuginfo, &id));
	assert_int_equal(fault_server_connections(run.server), 4);
	end(&run);
}

static void a_damaged_record_of_uploads_is_empty(void **state)
{
	static const char *const texts[] = { "", "x", "0123456789abcdef 99999999",
		"0123456789abcdef -00000000001\n", "zzzzzzzzzzzzzzzz 000000000001\n",
		"0123456789abcdef 999999999999\n0123" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct run run = { 0 };
		char path[96];

		begin(&run, false);
		debuginfo_destroy(run.debuginfo);
		snprintf(path, sizeof(path), "%s/debuginfo-known", run.directory);
		assert_int_equal(
			io_replace_file(AT_FDCWD, path, texts[i], strlen(texts[i]), 0600), 0);
		open_run(&run);
		assert_true(debuginfo_wants(run.debuginfo, &id));
		end(&run);
	}
}

static void a_file_without_a_build_id_is_not_wanted(void **state)
{
	const struct build_id none = { 0 };
	struct run run = { 0 };

	(void)state;
	begin(&run, false);
	assert_false(debuginfo_wants(run.debuginfo, &none));
	end(&run);
}

/* ---- what the server does not want ------------------------------------------------------------
 */
static void a_negative_answer_is_final(void **state)
{
	struct run run = { .parca.no = true };

	(void)state;
	run_one(&run, METRIC_DEBUGINFO_NOT_WANTED);
	assert_int_equal(run.parca.steps, steps_up_to(ASK));
	wait_until_idle(&run);
	assert_false(debuginfo_wants(run.debuginfo, &id));
	end(&run);
}

static void an_upload_by_another_client_is_accepted(void **state)
{
	static const char *const statuses[] = { "6", "9" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct run run = { .parca.at = INITIATE, .parca.grpc_status = statuses[i] };

		run_one(&run, METRIC_DEBUGINFO_NOT_WANTED);
		assert_int_equal(run.parca.steps, steps_up_to(INITIATE));
		wait_until_idle(&run);
		assert_false(debuginfo_wants(run.debuginfo, &id));
		end(&run);
	}
}

/* That upload may fail: the answer expires, and a restart forgets it. */
static void an_upload_in_progress_is_asked_for_again(void **state)
{
	struct run run = { .parca.no = true, .parca.in_progress = true };

	(void)state;
	run_one(&run, METRIC_DEBUGINFO_NOT_WANTED);
	wait_until_idle(&run);
	assert_false(debuginfo_wants(run.debuginfo, &id));
	debuginfo_destroy(run.debuginfo);
	open_run(&run);
	assert_true(debuginfo_wants(run.debuginfo, &id));
	end(&run);
}

static void a_refusal_is_final(void **state)
{
	struct run run = { .parca.at = INITIATE, .parca.grpc_status = "3" };

	(void)state;
	run_one(&run, METRIC_DEBUGINFO_REFUSED);
	wait_until_idle(&run);
	assert_false(debuginfo_wants(run.debuginfo, &id));
	end(&run);
}

/* ---- faults ------------------------------------------------------------------------------------
 */
/* It stays in the queue for later. */
static void assert_waits(struct run *run)
{
	assert_int_equal(debuginfo_pending(run->debuginfo), 1); /* under way, or waiting */
	assert_false(debuginfo_wants(run->debuginfo, &id));
	end(run);
}

static void server_not_reachable(void **state)
{
	struct run run = { 0 };

	(void)state;
	begin(&run, false);
	offer(&run);
	wait_for(&run, METRIC_DEBUGINFO_FAILED, 1);
	assert_waits(&run);
}

static void errors_before_the_upload_begins(void **state)
{
	static const struct parca faults[] = {
		{ .at = ASK, .http_status = "503" },
		{ .at = ASK, .grpc_status = "14" },
		{ .at = ASK, .grpc_status = "16" },
		{ .at = ASK, .overlong = true },
		{ .at = ASK, .junk = true },
		{ .at = INITIATE, .http_status = "500" },
		{ .at = INITIATE, .grpc_status = "13" },
		{ .at = INITIATE, .junk = true },
		{ .at = INITIATE, .overlong = true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct run run = { .parca = faults[i] };

		run_one(&run, METRIC_DEBUGINFO_FAILED);
		assert_int_equal(run.parca.steps, steps_up_to(faults[i].at));
		assert_waits(&run);
	}
}

/* The server believes an upload is in progress, so the next try waits until that expires. */
static void errors_during_the_upload(void **state)
{
	static const struct parca faults[] = {
		{ .at = UPLOAD, .reset = true },
		{ .at = UPLOAD, .http_status = "502" },
		{ .at = UPLOAD, .grpc_status = "13" },
		{ .at = UPLOAD, .junk = true },
		{ .at = UPLOAD, .overlong = true },
		{ .lie = 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct run run = { .parca = faults[i], .size = 300000 };

		run_one(&run, METRIC_DEBUGINFO_FAILED);
		assert_int_equal(run.parca.steps, steps_up_to(UPLOAD));
		wait_until_idle(&run);
		assert_false(debuginfo_wants(run.debuginfo, &id));
		end(&run);
	}
}

static void files_that_cannot_be_used(void **state)
{
	static const struct {
		int error;
		enum metric metric;
	} cases[] = {
		{ -ENODATA, METRIC_DEBUGINFO_NOTHING },
		{ -E2BIG, METRIC_DEBUGINFO_TOO_LARGE },
		{ -EBADMSG, METRIC_DEBUGINFO_UNREADABLE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run run = { .strip_error = cases[i].error };

		run_one(&run, cases[i].metric);
		assert_int_equal(run.parca.steps, steps_up_to(ASK));
		wait_until_idle(&run);
		assert_false(debuginfo_wants(run.debuginfo, &id));
		end(&run);
	}
}

static void a_local_shortage_is_temporary(void **state)
{
	static const int errors[] = { -ENOSPC, -EMFILE, -EAGAIN };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		struct run run = { .strip_error = errors[i] };

		run_one(&run, METRIC_DEBUGINFO_FAILED);
		assert_waits(&run);
	}
}

static void nothing_left_to_send_after_stripping(void **state)
{
	struct run run = { .size = 1 };

	(void)state;
	begin(&run, true);
	run.size = 0;
	offer(&run);
	wait_for(&run, METRIC_DEBUGINFO_UNREADABLE, 1);
	end(&run);
}

/* ---- the queue ----------------------------------------------------------------------------------
 */
static void the_queue_is_bounded(void **state)
{
	struct run run = { .strip_waits = true };
	size_t accepted = 0;

	(void)state;
	begin(&run, true);
	offer(&run);
	for (uint8_t i = 0; i < 200; i++) {
		const struct build_id other = { 2, { 0xff, i } };

		if (!debuginfo_wants(run.debuginfo, &other))
			continue;
		debuginfo_offer(run.debuginfo, &other, memory_file("ELF", 3));
		accepted++;
	}
	assert_true(accepted >= QUEUE - 1 && accepted <= QUEUE + 1);
	assert_int_equal(metrics_get(&run.metrics, METRIC_DEBUGINFO_POSTPONED), 200 - accepted);
	/* It stops at once, even during an upload. */
	end(&run);
}

/* Neither the queue nor the server's pauses pass it on to others. */
static void a_file_that_does_not_answer_holds_up_no_other(void **state)
{
	struct run run = { .parca.others = 1 };

	(void)state;
	begin(&run, true);
	debuginfo_offer(run.debuginfo, &other_id, memory_file("HANGS", 5));
	offer(&run);
	wait_for(&run, METRIC_DEBUGINFO_UPLOADED, 1);
	assert_file(&run);
	assert_int_equal(metrics_get(&run.metrics, METRIC_DEBUGINFO_FAILED), 1);
	wait_until_idle(&run);
	assert_false(debuginfo_wants(run.debuginfo, &other_id));
	/* It is asked after again before long, which another agent does not know. */
	debuginfo_destroy(run.debuginfo);
	open_run(&run);
	assert_true(debuginfo_wants(run.debuginfo, &other_id));
	end(&run);
}

/* ---- a store behind a signed URL ----------------------------------------------------------------
 */
static void take_put(struct fault_connection *c)
{
	struct fault_request *r = c->context;

	if (fault_read_request(c, r))
		fault_text(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	fault_wait_for_end(c);
}

static void a_store_gets_the_file_and_no_secrets(void **state)
{
	struct fault_request r = { 0 };
	struct fault_server *store = fault_server_start(take_put, &r, NULL);
	struct run run = { .size = 100000 };
	char url[128];

	(void)state;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/bucket/%s?signature=a%%2Bb",
		fault_server_port(store), build_id);
	run.parca.signed_url = url;
	run_one(&run, METRIC_DEBUGINFO_UPLOADED);
	assert_int_equal(run.parca.steps, steps_up_to(FINISH) & ~(1u << UPLOAD));
	end(&run);
	fault_server_stop(store);
	assert_non_null(strstr(r.head, "?signature=a%2Bb HTTP/1.1\r\n"));
	assert_int_equal(strncmp(r.head, "PUT /bucket/0102", 16), 0);
	assert_null(strstr(r.head, "uthorization"));
	assert_null(strstr(r.head, "ontent-Type"));
	assert_int_equal(r.body_size, 100000);
	for (size_t i = 0; i < r.body_size; i++)
		assert_int_equal(r.body[i], byte_at(i));
	free(r.body);
}

static void a_store_that_refuses(struct fault_connection *c)
{
	struct fault_request r = { 0 };

	fault_read_request(c, &r);
	free(r.body);
	fault_text(c, "HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\n"
		      "Content-Length: 0\r\n\r\n");
	fault_wait_for_end(c);
}

static void a_redirect_of_the_store_is_not_followed(void **state)
{
	struct fault_server *store = fault_server_start(a_store_that_refuses, NULL, NULL);
	struct run run = { 0 };
	char url[128];

	(void)state;
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/x", fault_server_port(store));
	run.parca.signed_url = url;
	run_one(&run, METRIC_DEBUGINFO_FAILED);
	assert_int_equal(run.parca.steps, steps_up_to(INITIATE));
	end(&run);
	fault_server_stop(store);
}

static void urls_that_are_not_used(void **state)
{
	static const char *const urls[] = { "file:///etc/passwd", "ftp://127.0.0.1/x", "",
		"http://user:word@127.0.0.1:1/x", "http://", "gopher" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		struct run run = { .parca.signed_url = urls[i] };

		run_one(&run, METRIC_DEBUGINFO_FAILED);
		assert_int_equal(run.parca.steps, steps_up_to(INITIATE));
		end(&run);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_uploaded_in_order),
		cmocka_unit_test(a_file_is_uploaded_once_and_remembered),
		cmocka_unit_test(a_damaged_record_of_uploads_is_empty),
		cmocka_unit_test(a_file_without_a_build_id_is_not_wanted),
		cmocka_unit_test(a_negative_answer_is_final),
		cmocka_unit_test(an_upload_by_another_client_is_accepted),
		cmocka_unit_test(an_upload_in_progress_is_asked_for_again),
		cmocka_unit_test(a_refusal_is_final),
		cmocka_unit_test(server_not_reachable),
		cmocka_unit_test(errors_before_the_upload_begins),
		cmocka_unit_test(errors_during_the_upload),
		cmocka_unit_test(files_that_cannot_be_used),
		cmocka_unit_test(a_local_shortage_is_temporary),
		cmocka_unit_test(nothing_left_to_send_after_stripping),
		cmocka_unit_test(the_queue_is_bounded),
		cmocka_unit_test(a_file_that_does_not_answer_holds_up_no_other),
		cmocka_unit_test(a_store_gets_the_file_and_no_secrets),
		cmocka_unit_test(a_redirect_of_the_store_is_not_followed),
		cmocka_unit_test(urls_that_are_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
