/* SPDX-License-Identifier: Apache-2.0 */
/* Implements agent/sampler/collect/collect.h over recorded rings. */
#include "agent/sampler/collect/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/drain.h"
#include "agent/sampler/collect/tables.h"
#include "agent/sampler/recording/ring_copy.h"
#include "tests/replay/replay_internal.h"

enum {
	MAX_RINGS = 512,
	MAX_RING_BYTES = 1 << 26,
	MAX_RECORD_BYTES = UINT16_MAX,
};

struct tables {
	struct abi_unwind_slot slots[ABI_UNWIND_SLOTS];
	bool by_file;
};

struct collect {
	struct replay *replay;
	struct drain drain;
	struct ring_copy copies[MAX_RINGS];
	struct ring *rings[MAX_RINGS];
	size_t ring_count;
	uint32_t looked; /* record that ended the last reading */
	uint32_t part; /* record of the last ring read */
	uint32_t window;
	struct tables *tables; /* NULL = none */
};

static int collect_make_tables(struct collect *c)
{
	const struct recording *recording = c->replay->recording;
	uint32_t number = recording_first(recording, RECORDING_COLLECT, 0);
	struct recording_collect body = { 0 };

	(void)recording_body(&recording->records[number], &body, sizeof(body));
	if (body.build_ids)
		drain_join_files(&c->drain);
	if (!body.tables)
		return 0;
	c->tables = calloc(1, sizeof(*c->tables));
	if (!c->tables)
		return -ENOMEM;
	c->tables->by_file = body.by_file;
	return 0;
}

int collect_create(
	const struct collect_options *options, struct collect **ret_collect, const char **ret_step)
{
	struct collect *c = calloc(1, sizeof(*c));
	int err;

	*ret_step = "replay";
	if (!c)
		return -ENOMEM;
	c->replay = replay_current();
	err = drain_init(&c->drain, options);
	if (!err)
		err = collect_make_tables(c);
	if (err) {
		collect_destroy(c);
		return err;
	}
	*ret_collect = c;
	return 0;
}

void collect_destroy(struct collect *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->ring_count; i++)
		ring_copy_deinit(&c->copies[i]);
	drain_deinit(&c->drain);
	free(c->tables);
	free(c);
}

int collect_start(struct collect *c)
{
	drain_set_sampling(&c->drain, true);
	return 0;
}

int collect_stop(struct collect *c)
{
	drain_set_sampling(&c->drain, false);
	return 0;
}

int collect_pause(struct collect *c, bool pause)
{
	(void)c;
	(void)pause;
	return 0;
}

int collect_set_frequency(struct collect *c, uint64_t hz)
{
	(void)c;
	(void)hz;
	return 0;
}

/* Recordings are of sampling: no functions are measured. */
int collect_set_tgids(struct collect *c, const uint32_t *tgids, size_t count)
{
	(void)c;
	(void)tgids;
	(void)count;
	return 0;
}

/* What is left out in the kernel is in no recording. */
int collect_leave_out_cgroup(struct collect *c, uint64_t id, bool out)
{
	(void)c;
	(void)id;
	(void)out;
	return 0;
}

struct bpf_object *collect_probe_object(const struct collect *c, const char *name)
{
	(void)c;
	(void)name;
	return NULL;
}

int collect_add_latency(
	struct collect *c, const struct latency_options *latency, const char **ret_step)
{
	(void)c;
	(void)latency;
	*ret_step = "measure functions in a recording";
	return -EOPNOTSUPP;
}

void collect_remove_latency(struct collect *c)
{
	(void)c;
}

int collect_add_kernel_latency(
	struct collect *c, const struct latency_options *latency, const char **ret_step)
{
	return collect_add_latency(c, latency, ret_step);
}

void collect_remove_kernel_latency(struct collect *c)
{
	(void)c;
}

int collect_fd(const struct collect *c)
{
	(void)c;
	return REPLAY_RINGS_FD;
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* Rings are recorded in the order of their numbers: a new one has the next number. */
static struct ring_copy *collect_ring(struct collect *c, const struct recording_ring *ring)
{
	bool good = ring->size_bytes >= 4096 && ring->size_bytes <= MAX_RING_BYTES &&
		    !(ring->size_bytes & (ring->size_bytes - 1)) &&
		    ring->behind_bytes <= MAX_RING_BYTES && ring->behind_bytes % 8 == 0;

	if (ring->number < c->ring_count)
		return &c->copies[ring->number];
	if (ring->number != c->ring_count || c->ring_count == MAX_RINGS || !good ||
		ring_copy_init(&c->copies[c->ring_count], ring->size_bytes, ring->behind_bytes,
			ring->room_bytes))
		return NULL;
	c->rings[c->ring_count] = &c->copies[c->ring_count].ring;
	return &c->copies[c->ring_count++];
}

/* Appends records one by one: behind a ring with extra space, each record is contiguous. */
static void collect_append(struct ring_copy *copy, const uint8_t *bytes, size_t size)
{
	while (size) {
		struct perf_event_header header;
		size_t piece = size;

		if (size >= sizeof(header)) {
			memcpy(&header, bytes, sizeof(header));
			if (header.size >= sizeof(header) && header.size <= size)
				piece = header.size;
		}
		ring_copy_append(copy, bytes, piece);
		bytes += piece;
		size -= piece;
	}
}

static void collect_read_part(struct collect *c, const struct record *record)
{
	struct recording_ring ring;
	struct ring_copy *copy;

	if (!recording_body(record, &ring, sizeof(ring)))
		return;
	copy = collect_ring(c, &ring);
	if (copy)
		collect_append(copy, record->body + sizeof(ring), record->size - sizeof(ring));
}

static uint32_t collect_following(
	const struct collect *c, enum recording_type type, uint32_t previous)
{
	return previous ? c->replay->recording->records[previous].next
			: recording_first(c->replay->recording, type, 0);
}

/* Brings the rings to their recorded state at the current time. */
static void collect_look(struct collect *c)
{
	const struct record *records = c->replay->recording->records;
	uint64_t now_ns = c->replay->now_ns;
	uint32_t looked, part;

	while ((looked = collect_following(c, RECORDING_LOOKED, c->looked)) != 0) {
		part = collect_following(c, RECORDING_RING, c->part);
		if ((part && part < looked ? records[part] : records[looked]).time_ns > now_ns)
			return;
		for (; part && part < looked; part = collect_following(c, RECORDING_RING, part)) {
			collect_read_part(c, &records[part]);
			c->part = part;
		}
		c->looked = looked;
		replay_move_clock(c->replay, records[looked].time_ns);
	}
}

int64_t collect_drain(struct collect *c, uint64_t until_ns)
{
	uint64_t limit_ns = drain_limit_ns(&c->drain, until_ns);

	collect_look(c);
	return drain_rings(&c->drain, c->rings, c->ring_count, limit_ns);
}

bool collect_left_much(const struct collect *c)
{
	return c->drain.left_much;
}

uint32_t collect_next_window(struct collect *c)
{
	return ++c->window;
}

int collect_check_cpus(struct collect *c)
{
	(void)c;
	return 0;
}

/* ---- writes to the kernel -------------------------------------------------------------------- */

int collect_set_runtime(struct collect *c, uint32_t tgid, const struct abi_runtime_process *how)
{
	(void)c;
	(void)tgid;
	(void)how;
	return 0;
}

void collect_remove_runtime(struct collect *c, uint32_t tgid)
{
	(void)c;
	(void)tgid;
}

void collect_set_kernel_tables(struct collect *c, const struct abi_kernel_tables *tables)
{
	(void)c;
	(void)tables;
}

struct tables *collect_tables(const struct collect *c)
{
	return c->tables;
}

uint64_t collect_counter(const struct collect *c, enum abi_counter counter)
{
	(void)c;
	(void)counter;
	return 0;
}

void collect_count(struct collect *c)
{
	(void)c;
}

size_t collect_cpu_count(const struct collect *c)
{
	(void)c;
	return 1;
}

int collect_bpf_stats(const struct collect *c, uint64_t *ret_ns, uint64_t *ret_runs)
{
	(void)c;
	*ret_ns = *ret_runs = 0;
	return 0;
}

uint64_t collect_map_bytes(const struct collect *c)
{
	(void)c;
	return 0;
}

struct abi_unwind_slot *tables_slots(const struct tables *t)
{
	return ((struct tables *)t)->slots;
}

bool tables_by_file(const struct tables *t)
{
	return t->by_file;
}

int tables_write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count)
{
	(void)context;
	(void)first;
	(void)ranges;
	(void)count;
	return 0;
}

int tables_write_pool(void *context, uint32_t offset, const void *bytes, size_t size)
{
	(void)context;
	(void)offset;
	(void)bytes;
	(void)size;
	return 0;
}

int tables_set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process)
{
	(void)context;
	(void)tgid;
	(void)process;
	return 0;
}

void tables_remove_process(void *context, uint32_t tgid)
{
	(void)context;
	(void)tgid;
}

int tables_set_file(
	void *context, const struct abi_file *file, const struct abi_unwind_process *ranges)
{
	(void)context;
	(void)file;
	(void)ranges;
	return 0;
}

void tables_remove_file(void *context, const struct abi_file *file)
{
	(void)context;
	(void)file;
}

void tables_set_files_epoch(void *context, uint32_t epoch)
{
	(void)context;
	(void)epoch;
}

void tables_set_epoch(void *context, uint32_t epoch)
{
	(void)context;
	(void)epoch;
}

void tables_set_rules_epoch(void *context, uint32_t epoch)
{
	(void)context;
	(void)epoch;
}

void tables_set_full(void *context, bool full)
{
	(void)context;
	(void)full;
}

void tables_leave_out(struct tables *t, uint32_t tgid, bool out)
{
	(void)t;
	(void)tgid;
	(void)out;
}
