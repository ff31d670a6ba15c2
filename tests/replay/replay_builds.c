/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Index builds, the index cache, debuginfod (never queried) and the vDSO, answered from the
 * recording at the recorded times.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/index/index.h"
#include "symbolizer/vdso.h"
#include "tests/replay/replay_internal.h"

enum { MAX_REQUESTS = 1 << 20 };

struct request {
	uint64_t tag;
	uint32_t record; /* record of its answer; 0 = never answered */
};

struct builds {
	struct replay *replay;
	struct builds_options options;
	struct request *requests; /* pending requests */
	size_t count, capacity;
};

/* Returns index file NUMBER of the recording, NULL if it is missing or of another format. */
static struct index *replay_index(struct replay *r, uint32_t number)
{
	uint32_t at =
		recording_first(r->recording, RECORDING_INDEX_FILE, recording_number_key(number));
	const struct record *record = replay_use(r, at);
	autoclose int fd = -1;
	struct index *index;

	if (!number || !at || record->size < sizeof(uint64_t))
		return NULL;
	fd = memfd_create("index", MFD_CLOEXEC);
	if (fd < 0 ||
		io_write_all(fd, record->body + sizeof(uint64_t), record->size - sizeof(uint64_t)))
		return NULL;
	if (index_open(fd, &index)) {
		r->error = -EPROTO;
		return NULL;
	}
	return index;
}

/* ---- builds ---------------------------------------------------------------------------------- */

int builds_create(const struct builds_options *options, struct builds **ret_builds)
{
	struct builds *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->replay = replay_current();
	b->options = *options;
	b->options.watch(b->options.context, REPLAY_BUILDS_FD, true);
	*ret_builds = b;
	return 0;
}

void builds_destroy(struct builds *b)
{
	if (!b)
		return;
	b->options.watch(b->options.context, REPLAY_BUILDS_FD, false);
	free(b->requests);
	free(b);
}

static void builds_answer(struct builds *b, uint64_t tag, uint32_t record)
{
	struct recording_index body = { 0 };

	(void)recording_index_body(replay_use(b->replay, record), &body);
	b->options.done(b->options.context, tag, replay_index(b->replay, body.file));
}

/* Returns the first answer at or after the current time, 0 if there is none. */
static uint32_t builds_next_answer(const struct builds *b, const struct module_id *id)
{
	uint64_t key = recording_wanted_id_key(b->replay->recording, RECORDING_INDEX, id);
	const struct record *records = b->replay->recording->records;
	uint32_t at = recording_first(b->replay->recording, RECORDING_INDEX, key);

	while (at && records[at].time_ns < b->replay->now_ns)
		at = records[at].next;
	return at;
}

static int builds_refusal(const struct builds *b, const struct module_id *id)
{
	uint64_t key = recording_wanted_id_key(b->replay->recording, RECORDING_REQUEST, id);
	const struct record *records = b->replay->recording->records;
	uint32_t at = recording_first(b->replay->recording, RECORDING_REQUEST, key);
	struct recording_index body;

	while (at && records[at].time_ns < b->replay->now_ns)
		at = records[at].next;
	if (!at || records[at].time_ns > b->replay->now_ns ||
		!recording_index_body(replay_use(b->replay, at), &body))
		return 0;
	return body.error < 0 ? body.error : 0;
}

int builds_request_debug(struct builds *b, const struct module_id *id, int fd_, uint64_t tag,
	const struct debug_search *search)
{
	autoclose int fd = fd_;
	uint32_t answer = builds_next_answer(b, id);
	int err = builds_refusal(b, id);

	(void)fd;
	(void)search;
	if (err)
		return err;
	if (answer && b->replay->recording->records[answer].time_ns == b->replay->now_ns) {
		builds_answer(b, tag, answer);
		return 0;
	}
	err = array_reserve(b->requests, b->capacity, b->count + 1, MAX_REQUESTS);
	if (!err)
		b->requests[b->count++] = (struct request){ .tag = tag, .record = answer };
	return err;
}

/* No recorded run wants functions. */
int builds_request_functions(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search)
{
	return builds_request_debug(b, id, fd, tag, search);
}

int builds_request(struct builds *b, const struct module_id *id, int fd, uint64_t tag)
{
	return builds_request_debug(b, id, fd, tag, NULL);
}

/* Returns the pending request with the earliest answer that is due, or NULL. */
static struct request *builds_due(const struct builds *b)
{
	struct request *due = NULL;

	for (size_t i = 0; i < b->count; i++) {
		struct request *request = &b->requests[i];
		const struct record *answer = &b->replay->recording->records[request->record];

		if (request->record && answer->time_ns <= b->replay->now_ns &&
			(!due || request->record < due->record))
			due = request;
	}
	return due;
}

static void builds_answer_due(struct builds *b)
{
	struct request *due;

	while ((due = builds_due(b)) != NULL) {
		struct request request = *due;

		*due = b->requests[--b->count];
		builds_answer(b, request.tag, request.record);
	}
}

void builds_ready(struct builds *b, int fd)
{
	(void)fd;
	builds_answer_due(b);
}

void builds_expire(struct builds *b, uint64_t now_ns)
{
	(void)now_ns;
	builds_answer_due(b);
}

void builds_hurry(struct builds *b)
{
	(void)b;
}

void builds_want(struct builds *b, uint64_t tag)
{
	(void)b;
	(void)tag;
}

unsigned int builds_pending(const struct builds *b)
{
	return (unsigned int)b->count;
}

bool builds_debug_is_late(const struct builds *b)
{
	(void)b;
	return false;
}

struct builds_setbacks builds_setbacks(const struct builds *b)
{
	(void)b;
	return (struct builds_setbacks){ 0 };
}

struct builds_improving builds_improving(const struct builds *b)
{
	(void)b;
	return (struct builds_improving){ 0 };
}

void builds_set_share(struct builds *b, double share)
{
	(void)b;
	(void)share;
}

uint64_t builds_charged_ns(const struct builds *b)
{
	return builds_cpu_ns(b);
}

uint64_t builds_cpu_ns(const struct builds *b)
{
	(void)b;
	return 0;
}

uint64_t builds_peak_bytes(const struct builds *b)
{
	(void)b;
	return 0;
}

/* ---- the cache ------------------------------------------------------------------------------- */

struct cache {
	struct replay *replay;
};

int cache_create(const char *directory, uint64_t limit_bytes, struct cache **ret_cache)
{
	struct cache *cache = calloc(1, sizeof(*cache));

	(void)directory;
	(void)limit_bytes;
	if (!cache)
		return -ENOMEM;
	cache->replay = replay_current();
	*ret_cache = cache;
	return 0;
}

void cache_destroy(struct cache *cache)
{
	free(cache);
}

int cache_open(struct cache *cache, const struct module_id *id, struct index **ret_index)
{
	uint32_t at = replay_ask(cache->replay, RECORDING_CACHED,
		recording_wanted_id_key(cache->replay->recording, RECORDING_CACHED, id));
	struct recording_index body;
	struct index *index;

	if (!at || !recording_index_body(&cache->replay->recording->records[at], &body))
		return -ENOENT;
	if (body.error)
		return body.error < 0 ? body.error : -ENOENT;
	index = replay_index(cache->replay, body.file);
	if (!index)
		return -ENOENT;
	*ret_index = index;
	return 0;
}

int cache_trim(struct cache *cache)
{
	(void)cache;
	return 0;
}

/* ---- debuginfod ------------------------------------------------------------------------------ */

int debuginfod_create(const struct debuginfod_options *options, struct debuginfod **ret_debuginfod)
{
	(void)options;
	(void)ret_debuginfod;
	return -ENOENT;
}

void debuginfod_destroy(struct debuginfod *d)
{
	(void)d;
}

struct debuginfod_state debuginfod_state(const struct debuginfod *d)
{
	(void)d;
	return (struct debuginfod_state){ 0 };
}

const char *debuginfod_explain(int error)
{
	(void)error;
	return "";
}

/* ---- the vDSO -------------------------------------------------------------------------------- */

int vdso_open(int *ret_fd, struct module_id *ret_id)
{
	struct replay *r = replay_current();
	uint32_t at = replay_ask(r, RECORDING_VDSO, 0);
	struct recording_index body;
	int fd;

	if (!at || !recording_index_body(&r->recording->records[at], &body))
		return -ENOENT;
	if (body.error)
		return body.error < 0 ? body.error : -ENOENT;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	*ret_id = body.id;
	return 0;
}
