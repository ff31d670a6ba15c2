/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/replay/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"

enum {
	MAX_BYTES = 1 << 29,
	MAX_RECORDS = 1 << 24,
	PIECE_BYTES = 1 << 16,
};

static int recording_inflate(const void *bytes, size_t size, struct buffer *out)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	ZSTD_inBuffer in = { .src = bytes, .size = size };
	bool more = true; /* the stream may hold output when all input is read */
	int err = stream ? 0 : -ENOMEM;

	while (!err && (more || in.pos < in.size)) {
		ZSTD_outBuffer piece = { .dst = buffer_room(out, PIECE_BYTES),
			.size = PIECE_BYTES };

		if (!piece.dst)
			err = -ENOMEM;
		else if (ZSTD_isError(ZSTD_decompressStream(stream, &piece, &in)))
			err = -EBADMSG;
		out->size += piece.pos;
		more = piece.pos == piece.size;
	}
	ZSTD_freeDStream(stream);
	return err;
}

uint64_t recording_text_key(const char *text)
{
	return hash_bytes(text, strlen(text)) | 1;
}

uint64_t recording_id_key(const struct module_id *id)
{
	return module_id_hash(id) | 1;
}

uint64_t recording_wanted_id_key(
	const struct recording *r, enum recording_type type, const struct module_id *id)
{
	const struct module_id seen = { .build_id = id->build_id, .content = id->content };
	uint64_t key = recording_id_key(id);

	return recording_first(r, type, key) ? key : recording_id_key(&seen);
}

uint64_t recording_number_key(uint64_t number)
{
	return hash_bytes(&number, sizeof(number)) | 1;
}

bool recording_body(const struct record *record, void *bytes, size_t size)
{
	if (record->size < size)
		return false;
	memcpy(bytes, record->body, size);
	return true;
}

bool recording_index_body(const struct record *record, struct recording_index *ret_index)
{
	struct recording_index index = { 0 };

	if (record->size < offsetof(struct recording_index, id.file.birth_ns))
		return false;
	memcpy(&index, record->body, MIN((size_t)record->size, sizeof(index)));
	*ret_index = index;
	return true;
}

const char *recording_text(const struct record *record, size_t size)
{
	if (record->size <= size || record->body[record->size - 1])
		return "";
	return (const char *)record->body + size;
}

/* Returns the offset of the question in the body of a record. */
static size_t recording_question_place(const struct record *record)
{
	struct recording_answer answer = { 0 };

	(void)recording_body(record, &answer, sizeof(answer));
	switch (record->type) {
	case RECORDING_LINK:
		return sizeof(answer) + (size_t)answer.value;
	case RECORDING_STAT_AT:
		return sizeof(answer) + sizeof(struct recording_stat);
	case RECORDING_ENTRY:
		return sizeof(answer) + strlen(recording_text(record, sizeof(answer))) + 1;
	default:
		return sizeof(answer);
	}
}

static uint64_t recording_key(const struct record *record)
{
	struct recording_answer answer = { 0 };
	struct recording_data data = { 0 };
	struct recording_index index = { 0 };
	uint64_t number = 0;

	switch (record->type) {
	case RECORDING_OPENED:
	case RECORDING_LINK:
	case RECORDING_STAT_AT:
	case RECORDING_ENTRY:
		return recording_text_key(recording_text(record, recording_question_place(record)));
	case RECORDING_STAT:
	case RECORDING_FILE_STATE:
	case RECORDING_BUILD_ID:
		(void)recording_body(record, &answer, sizeof(answer));
		return recording_number_key(answer.value);
	case RECORDING_DATA:
		(void)recording_body(record, &data, sizeof(data));
		return recording_number_key(data.object);
	case RECORDING_REQUEST:
	case RECORDING_INDEX:
	case RECORDING_CACHED:
		(void)recording_index_body(record, &index);
		return recording_id_key(&index.id);
	case RECORDING_INDEX_FILE:
		(void)recording_body(record, &number, sizeof(number));
		return recording_number_key(number);
	default:
		return 0;
	}
}

static bool is_event(enum recording_type type)
{
	return (type >= RECORDING_TICK && type <= RECORDING_REPORT) || type == RECORDING_TIMER;
}

static uint64_t recording_chain(enum recording_type type, uint64_t key)
{
	return key * 31 + (uint64_t)type;
}

static int recording_add(struct recording *r, const struct record *record)
{
	uint64_t chain = recording_chain(record->type, record->key), last;
	int err = array_reserve(r->records, r->capacity, r->count + 1, MAX_RECORDS);

	if (err)
		return err;
	r->records[r->count] = *record;
	if (is_event(record->type)) {
		err = array_reserve(r->events, r->event_capacity, r->event_count + 1, MAX_RECORDS);
		if (err)
			return err;
		r->events[r->event_count++] = (uint32_t)r->count;
	} else {
		if (map_get(&r->last, chain, &last))
			r->records[last].next = (uint32_t)r->count;
		else
			err = map_set(&r->first, chain, r->count);
		if (!err)
			err = map_set(&r->last, chain, r->count);
	}
	r->count++;
	return err;
}

static int recording_read(struct recording *r)
{
	size_t at = strlen(RECORDING_MAGIC), size = r->bytes.size;
	uint64_t time_ns = 0;
	int err = recording_add(r, &(struct record){ 0 });

	if (size < at || memcmp(r->bytes.bytes, RECORDING_MAGIC, at))
		return -EBADMSG;
	while (!err && at < size) {
		struct recording_head head;
		struct record record;

		if (size - at < sizeof(head))
			return -EBADMSG;
		memcpy(&head, r->bytes.bytes + at, sizeof(head));
		at += sizeof(head);
		if (head.size > size - at || head.type == 0 || head.type >= RECORDING_TYPES)
			return -EBADMSG;
		/* Times must not decrease: they give the order of answers to one question. */
		time_ns = head.time_ns > time_ns ? head.time_ns : time_ns;
		record = (struct record){ .type = head.type,
			.time_ns = time_ns,
			.body = r->bytes.bytes + at,
			.size = head.size };
		record.key = recording_key(&record);
		r->names_timers |= head.type == RECORDING_TIMER;
		if (head.type == RECORDING_BEGIN)
			(void)recording_body(&record, &r->begin, sizeof(r->begin));
		err = recording_add(r, &record);
		at += head.size;
	}
	return err;
}

int recording_parse(const void *bytes, size_t size, struct recording *ret_recording)
{
	struct recording r = { 0 };
	int err;

	buffer_init(&r.bytes, MAX_BYTES);
	map_init(&r.first, MAX_RECORDS);
	map_init(&r.last, MAX_RECORDS);
	if (size >= strlen(RECORDING_MAGIC) &&
		!memcmp(bytes, RECORDING_MAGIC, strlen(RECORDING_MAGIC)))
		err = buffer_append(&r.bytes, bytes, size);
	else
		err = recording_inflate(bytes, size, &r.bytes);
	if (!err)
		err = recording_read(&r);
	if (err) {
		recording_deinit(&r);
		return err;
	}
	*ret_recording = r;
	return 0;
}

void recording_deinit(struct recording *r)
{
	buffer_deinit(&r->bytes);
	free(r->records);
	free(r->events);
	map_deinit(&r->first);
	map_deinit(&r->last);
	*r = (struct recording){ 0 };
}

uint32_t recording_first(const struct recording *r, enum recording_type type, uint64_t key)
{
	uint64_t first;

	return map_get(&r->first, recording_chain(type, key), &first) ? (uint32_t)first : 0;
}
