/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce IN OUT: compresses the recording IN and drops what its replay does not need: records of
 * processes that were not sampled, kernel symbols that are in no stack, indexes of programs that
 * are in no profile, unused answers. OUT is written only if its replay gives the same profiles.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include <zstd.h>

#include "agent/sampler/recording/notes.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "bpf/abi/sample.h"
#include "tests/replay/replay.h"
#include "tests/replay/tools/kernel_pcs.h"
#include "tests/replay/tools/ring_piece.h"

enum {
	MAX_BYTES = 1 << 29,
	MAX_KNOWN = 1 << 22,
	ZSTD_LEVEL = 19,
	MAX_INDEXES = 256,
	SAMPLE_ID_BYTES = 8,
};

/* How to treat the records of processes that were not sampled. */
enum strangers {
	STRANGERS_GO,
	STRANGERS_WITHOUT_MAPPINGS, /* nor names */
	STRANGERS_WITHOUT_NAMES,
	STRANGERS_STAY,
};

struct reduction {
	const struct recording *in;
	enum strangers strangers;
	struct map wanted; /* tgid → 1 */
	bool all; /* all processes were sampled */
	struct map stacks; /* ids in samples of wanted processes → 1 */
	struct kernel_pcs kernel_pcs; /* pcs of these stacks */
	const uint8_t *used; /* NULL = all answers */
	uint32_t kallsyms; /* number of the last open file of /proc/kallsyms */
	uint64_t without; /* index file to drop */
	struct buffer out;
};

/* ---- records of the rings -------------------------------------------------------------------- */

/* Processes outside of the recorder's pid namespace have no pid there. */
static bool is_wanted(const struct reduction *r, uint32_t tgid)
{
	uint64_t one;

	return r->all ? tgid != 0 && tgid != UINT32_MAX : map_get(&r->wanted, tgid, &one);
}

static void note_kernel_pcs(struct reduction *r, const uint8_t *stack, size_t bytes)
{
	uint32_t count = ring_u32_at(stack, offsetof(struct abi_stack, frame_count));

	if (!(ring_u32_at(stack, offsetof(struct abi_stack, flags)) & ABI_STACK_KERNEL))
		return;
	for (uint32_t i = 0; i < count && sizeof(struct abi_stack) + 8 * (i + 1) <= bytes; i++)
		kernel_pcs_add(
			&r->kernel_pcs, ring_u64_at(stack, sizeof(struct abi_stack) + 8 * i));
}

/* Notes children of wanted processes and the stacks of their samples. */
static void note_piece(struct reduction *r, const struct piece *p)
{
	uint32_t kind = p->raw ? ring_u32_at(p->raw, 0) : 0;

	if (p->type == PERF_RECORD_FORK && is_wanted(r, p->parent))
		(void)map_set(&r->wanted, p->tgid, 1);
	if ((kind == ABI_TICK || kind == ABI_SWITCH_OUT) && is_wanted(r, p->tgid)) {
		(void)map_set(&r->stacks,
			ring_u64_at(p->raw, offsetof(struct abi_sample, user_stack)), 1);
		(void)map_set(&r->stacks,
			ring_u64_at(p->raw, offsetof(struct abi_sample, kernel_stack)), 1);
	}
}

typedef void piece_fn(struct reduction *r, const struct piece *p);

static void for_each_piece(struct reduction *r, const struct record *record, piece_fn *fn)
{
	size_t at = sizeof(struct recording_ring);
	struct piece p;

	while (at < record->size && piece_read(record->body + at, record->size - at, &p)) {
		fn(r, &p);
		at += p.size;
	}
}

static void keep(struct reduction *r, const struct piece *p)
{
	uint64_t one;

	if (piece_is_stack(p) &&
		map_get(&r->stacks, ring_u64_at(p->raw, offsetof(struct abi_stack, id)), &one))
		note_kernel_pcs(r, p->raw, p->raw_bytes);
	(void)buffer_append(&r->out, p->bytes, p->size);
}

/* Replaces the path or name at OFFSET by as many letters. */
static void keep_without_name(struct reduction *r, const struct piece *p, size_t offset)
{
	uint8_t *copy;

	keep(r, p);
	if (r->out.error)
		return;
	copy = r->out.bytes + r->out.size - p->size;
	for (size_t i = offset; i + SAMPLE_ID_BYTES < p->size && copy[i]; i++)
		if (copy[i] != '/')
			copy[i] = 'x';
}

static void reduce_piece(struct reduction *r, const struct piece *p)
{
	enum { MMAP2_PATH = 72, COMM_NAME = 16 };
	bool of_task = p->type == PERF_RECORD_MMAP2 || p->type == PERF_RECORD_COMM ||
		       p->type == PERF_RECORD_FORK || p->type == PERF_RECORD_EXIT;
	uint64_t one;

	if (p->type == PERF_RECORD_KSYMBOL && r->strangers == STRANGERS_GO && !r->all)
		return;
	if (piece_is_stack(p)) {
		if (map_get(&r->stacks, ring_u64_at(p->raw, offsetof(struct abi_stack, id)), &one))
			keep(r, p);
		return;
	}
	if (p->type == PERF_RECORD_SAMPLE && p->raw && !p->part && !is_wanted(r, p->tgid))
		return;
	if (!of_task || is_wanted(r, p->tgid) || is_wanted(r, p->parent) ||
		r->strangers == STRANGERS_STAY)
		keep(r, p);
	else if (r->strangers == STRANGERS_WITHOUT_NAMES ||
		 (r->strangers == STRANGERS_WITHOUT_MAPPINGS && p->type != PERF_RECORD_MMAP2))
		keep_without_name(r, p,
			p->type == PERF_RECORD_MMAP2  ? MMAP2_PATH
			: p->type == PERF_RECORD_COMM ? COMM_NAME
						      : p->size);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void write_record(
	struct reduction *r, const struct record *record, const void *body, size_t size)
{
	struct recording_head head = {
		.type = record->type, .size = (uint32_t)size, .time_ns = record->time_ns
	};

	(void)buffer_append(&r->out, &head, sizeof(head));
	(void)buffer_append(&r->out, body, size);
}

static void reduce_ring(struct reduction *r, const struct record *record)
{
	struct recording_head head = { .type = record->type, .time_ns = record->time_ns };
	size_t head_at = r->out.size;

	(void)buffer_append(&r->out, &head, sizeof(head));
	(void)buffer_append(
		&r->out, record->body, MIN(record->size, sizeof(struct recording_ring)));
	for_each_piece(r, record, reduce_piece);
	if (r->out.error)
		return;
	head.size = (uint32_t)(r->out.size - head_at - sizeof(head));
	memcpy(r->out.bytes + head_at, &head, sizeof(head));
}

static bool is_answer(enum recording_type type)
{
	return type >= RECORDING_OPENED && type < RECORDING_TYPES && type != RECORDING_COLLECT &&
	       type != RECORDING_ENTRY && type != RECORDING_TIMER;
}

static void reduce_data(struct reduction *r, const struct record *record)
{
	autocall(buffer_deinit) struct buffer reduced;
	struct recording_data data;

	buffer_init(&reduced, MAX_BYTES);
	if (!recording_body(record, &data, sizeof(data)) || data.object != r->kallsyms) {
		write_record(r, record, record->body, record->size);
		return;
	}
	(void)buffer_append(&reduced, &data, sizeof(data));
	kernel_pcs_reduce(&r->kernel_pcs, (const char *)record->body + sizeof(data),
		record->size - sizeof(data), &reduced);
	write_record(r, record, reduced.bytes, reduced.size);
}

/* The size of /proc/kallsyms changes with its contents. */
static void reduce_stat(struct reduction *r, const struct record *record)
{
	struct {
		struct recording_answer answer;
		struct recording_stat stat;
	} body;

	if (!recording_body(record, &body, sizeof(body)))
		return;
	if (r->kallsyms && body.answer.value == r->kallsyms)
		body.stat.size_bytes = 0;
	write_record(r, record, &body, sizeof(body));
}

/* The index of a dropped file becomes an index that could not be built. */
static void reduce_index(struct reduction *r, const struct record *record)
{
	struct recording_index body;

	if (!recording_index_body(record, &body))
		return;
	if (body.file && body.file == r->without) {
		body.file = 0;
		body.error = record->type == RECORDING_CACHED ? -ENOENT : 0;
	}
	write_record(r, record, &body, sizeof(body));
}

static void reduce_index_file(struct reduction *r, const struct record *record)
{
	uint64_t number;

	if (recording_body(record, &number, sizeof(number)) && number != r->without)
		write_record(r, record, record->body, record->size);
}

/* Whether a question is about a process that was not sampled, which then looks gone. */
static bool is_of_stranger(const struct reduction *r, const struct record *record)
{
	const char *question = recording_text(record, sizeof(struct recording_answer));
	char *end;
	unsigned long pid;

	if (record->type != RECORDING_OPENED || r->strangers == STRANGERS_STAY || !*question ||
		strncmp(question + 1, "/proc/", strlen("/proc/")))
		return false;
	pid = strtoul(question + 1 + strlen("/proc/"), &end, 10);
	return pid && (*end == '/' || !*end) && !is_wanted(r, (uint32_t)pid);
}

static void reduce_record(struct reduction *r, size_t number)
{
	const struct record *record = &r->in->records[number];
	struct recording_answer answer = { 0 };

	if (record->type == RECORDING_OPENED && recording_body(record, &answer, sizeof(answer)) &&
		!strcmp(recording_text(record, sizeof(answer)), "o/proc/kallsyms"))
		r->kallsyms = answer.value;
	if (r->used && is_answer(record->type) && !r->used[number])
		return;
	if (is_of_stranger(r, record))
		return;
	if (record->type == RECORDING_RING)
		reduce_ring(r, record);
	else if (record->type == RECORDING_DATA)
		reduce_data(r, record);
	else if (record->type == RECORDING_STAT)
		reduce_stat(r, record);
	else if (record->type == RECORDING_INDEX || record->type == RECORDING_CACHED)
		reduce_index(r, record);
	else if (record->type == RECORDING_INDEX_FILE)
		reduce_index_file(r, record);
	else
		write_record(r, record, record->body, record->size);
}

static void note_target(struct reduction *r, const struct record *record)
{
	struct recording_call call;

	if (!recording_body(record, &call, sizeof(call)) || call.call != SAMPLER_CALL_CREATE)
		return;
	if (call.follow_pid)
		(void)map_set(&r->wanted, call.follow_pid, 1);
	for (uint32_t i = 0;
		i < call.tgid_count && sizeof(call) + 4 * (size_t)(i + 1) <= record->size; i++)
		(void)map_set(&r->wanted, ring_u32_at(record->body, sizeof(call) + 4 * i), 1);
	r->all = !call.follow_pid && !call.filter_tgids;
}

struct parts {
	enum strangers strangers;
	const uint8_t *used; /* NULL = keep all answers */
	uint64_t without; /* index file to drop; 0 = none */
};

static int reduce(const struct recording *in, const struct parts *parts, struct buffer *out)
{
	struct reduction r = { .in = in,
		.strangers = parts->strangers,
		.used = parts->used,
		.without = parts->without };

	buffer_init(&r.out, MAX_BYTES);
	map_init(&r.wanted, MAX_KNOWN);
	map_init(&r.stacks, MAX_KNOWN);
	(void)buffer_string(&r.out, RECORDING_MAGIC);
	for (size_t i = 1; i < in->count; i++)
		if (in->records[i].type == RECORDING_CALL)
			note_target(&r, &in->records[i]);
	/* Rings are read one after the other, so a child may come before its parent. */
	for (int round = 0; round < 3; round++)
		for (size_t i = 1; i < in->count; i++)
			if (in->records[i].type == RECORDING_RING)
				for_each_piece(&r, &in->records[i], note_piece);
	/* The rings come first, as their stacks decide which symbols are needed. */
	for (size_t i = 1; i < in->count; i++)
		if (in->records[i].type == RECORDING_RING)
			reduce_ring(&r, &in->records[i]);
	r.out.size = strlen(RECORDING_MAGIC);
	for (size_t i = 1; i < in->count; i++)
		reduce_record(&r, i);
	kernel_pcs_deinit(&r.kernel_pcs);
	map_deinit(&r.wanted);
	map_deinit(&r.stacks);
	*out = r.out;
	return r.out.error;
}

static void compare(void *context, const struct replay_report *report)
{
	unsigned int *different = context;

	*different += report->expected_bytes != report->got_bytes ||
		      memcmp(report->expected, report->got, report->got_bytes);
}

/* Returns the used answers of R's replay, NULL if its profiles differ from the recorded ones. */
static uint8_t *replay_same(const struct recording *r)
{
	struct replay_result result = { 0 };
	unsigned int different = 0;
	int err = replay_run(r, 0, compare, &different, &result);

	if (!err && !different && result.reports)
		return result.used;
	free(result.used);
	return NULL;
}

/* Returns true if OUT gives the same profiles. */
static bool reduce_and_check(
	const struct recording *in, enum strangers strangers, struct buffer *out)
{
	autocall(recording_deinit) struct recording once = { 0 }, twice = { 0 };
	autocall(buffer_deinit) struct buffer first = { 0 };
	autofree uint8_t *used = NULL, *used_again = NULL;

	if (reduce(in, &(struct parts){ .strangers = strangers }, &first) ||
		recording_parse(first.bytes, first.size, &once))
		return false;
	used = replay_same(&once);
	if (!used || reduce(&once, &(struct parts){ .strangers = strangers, .used = used }, out) ||
		recording_parse(out->bytes, out->size, &twice))
		return false;
	used_again = replay_same(&twice);
	return used_again != NULL;
}

/* Drops the indexes of programs that are in no profile. */
static void reduce_indexes(struct buffer *bytes)
{
	for (uint64_t number = 1; number <= MAX_INDEXES; number++) {
		autocall(recording_deinit) struct recording before = { 0 }, after = { 0 };
		autocall(buffer_deinit) struct buffer out = { 0 };
		autofree uint8_t *used = NULL;

		if (recording_parse(bytes->bytes, bytes->size, &before) ||
			!recording_first(
				&before, RECORDING_INDEX_FILE, recording_number_key(number)) ||
			reduce(&before,
				&(struct parts){ .strangers = STRANGERS_STAY, .without = number },
				&out) ||
			recording_parse(out.bytes, out.size, &after))
			continue;
		used = replay_same(&after);
		if (!used)
			continue;
		buffer_deinit(bytes);
		*bytes = out;
		buffer_init(&out, 0);
	}
}

static int write_compressed(const char *path, const struct buffer *bytes)
{
	size_t bound = ZSTD_compressBound(bytes->size), size;
	autofree void *compressed = malloc(bound);

	if (!compressed)
		return -ENOMEM;
	size = ZSTD_compress(compressed, bound, bytes->bytes, bytes->size, ZSTD_LEVEL);
	if (ZSTD_isError(size))
		return -EIO;
	printf("%s: %zu bytes, compressed %zu\n", path, bytes->size, size);
	return io_replace_file(AT_FDCWD, path, compressed, size, 0644);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "went", "lost their mappings", "lost their names",
		"stayed" };
	autocall(recording_deinit) struct recording in = { 0 };
	autocall(buffer_deinit) struct buffer bytes;

	log_configure(LOG_ERROR, false);
	buffer_init(&bytes, MAX_BYTES);
	if (argc != 3 || io_read_file(AT_FDCWD, argv[1], &bytes) ||
		recording_parse(bytes.bytes, bytes.size, &in)) {
		fprintf(stderr, "usage: reduce RECORDING REDUCED\n");
		return 1;
	}
	for (enum strangers s = STRANGERS_GO; s <= STRANGERS_STAY; s++) {
		autocall(buffer_deinit) struct buffer out = { 0 };

		if (!reduce_and_check(&in, s, &out))
			continue;
		reduce_indexes(&out);
		printf("other processes %s\n", kinds[s]);
		return write_compressed(argv[2], &out) ? 1 : 0;
	}
	fprintf(stderr, "%s: its replay does not give the same profiles\n", argv[1]);
	return 1;
}
