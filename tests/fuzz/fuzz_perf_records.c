/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two rings of any content, read until they are empty: the input's first bytes say where the first
 * ring's records begin and how the input is divided; the rest is the kernel's records.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/events.h"
#include "agent/sampler/collect/merge.h"
#include "agent/sampler/probes/probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { DATA_BYTES = 4096, HEADER_BYTES = 4, BEHIND_BYTES = 256 };

struct side {
	struct perf_event_mmap_page control;
	uint8_t *data; /* from malloc(), so that sanitizers see reads past its end */
	struct ring ring;
};

static uint64_t last_ns;
static volatile uint64_t touched;

static void take_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	(void)context;
	touched += time_ns + tick->sample.tgid + (uint8_t)tick->sample.comm[ABI_COMM_BYTES - 1] +
		   tick->period;
}

static void take_switch_out(
	void *context, uint64_t time_ns, const struct abi_switch_out *switch_out)
{
	(void)context;
	touched += time_ns + switch_out->sample.tgid + switch_out->left_ns;
}

static void take_unfinished(
	void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	(void)context;
	touched += time_ns + unfinished->tick.period;
	for (uint32_t i = 0; i < unfinished->rest.stack_bytes; i++)
		touched += unfinished->stack[i];
}

static void take_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	(void)context;
	touched += time_ns + wake->tid + wake->wait_ns;
}

static void take_sightings(void *context, uint64_t time_ns, const struct abi_sightings *sightings)
{
	(void)context;
	touched += time_ns + sightings->tgid;
	for (uint32_t i = 0; i < sightings->count; i++)
		touched += sightings->of[i].pc + sightings->of[i].shown_device;
}

static void take_stack(void *context, const struct abi_stack *stack)
{
	(void)context;
	for (uint32_t i = 0; i < stack->frame_count; i++)
		touched += stack->frames[i];
}

static void take_mmap(void *context, const struct collect_mmap *mmap)
{
	(void)context;
	if (mmap->build_id.size > BUILD_ID_MAX_BYTES)
		abort();
	touched += strlen(mmap->path);
}

static void take_comm(
	void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm, bool exec)
{
	(void)context;
	touched += time_ns + tgid + tid + strlen(comm) + exec;
}

static void take_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	(void)context;
	touched += kaddr + size + strlen(name) + bpf + gone;
}

static void deliver(void *context, uint64_t time_ns, const uint8_t *record, size_t size)
{
	if (time_ns < last_ns)
		abort();
	last_ns = time_ns;
	events_deliver(context, time_ns, record, size);
}

static void ignore_bad(void *context, uint64_t time_ns, uint64_t bytes)
{
	(void)context;
	touched += time_ns + bytes;
}

/* A gap is reported in the order of records and does not end before it begins. */
static void take_gap(void *context, uint64_t time_ns, uint64_t until_ns)
{
	(void)context;
	if (time_ns < last_ns || until_ns < time_ns)
		abort();
	last_ns = time_ns;
}

/* The ring is followed by BEHIND bytes for records that cross its end, as in own rings. */
static void fill(
	struct side *side, uint64_t start, const uint8_t *bytes, size_t size, uint64_t behind)
{
	side->data = malloc(DATA_BYTES + behind);
	if (!side->data)
		abort();
	memset(side->data, 0, DATA_BYTES + behind);
	side->control.data_tail = start;
	side->control.data_head = start + size;
	for (size_t i = 0; i < size; i++)
		side->data[(start + i) % DATA_BYTES] = bytes[i];
	ring_over(&side->ring, &side->control, side->data, DATA_BYTES);
	side->ring.behind_bytes = behind;
}

static void run(struct side sides[2], const struct events *events)
{
	const struct merge_sink sink = {
		.record = deliver, .bad = ignore_bad, .gap = take_gap, .context = (void *)events
	};
	struct ring *rings[2] = { &sides[0].ring, &sides[1].ring };
	struct merge merge;

	if (merge_init(&merge))
		abort();
	last_ns = 0;
	merge_rings(&merge, rings, 2, 1 << 20, &sink);
	merge_rings(&merge, rings, 2, UINT64_MAX, &sink);
	/* All records are read or dropped, and their space is returned to the kernel. */
	for (int i = 0; i < 2; i++)
		if (sides[i].control.data_tail != sides[i].control.data_head)
			abort();
	merge_deinit(&merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct metrics metrics;
	struct mapped_files files = { 0 };
	const struct events events = { .metrics = &metrics,
		.probes = probes_all,
		.files = size % 2 ? &files : NULL,
		.handlers = { .tick = take_tick,
			.switch_out = take_switch_out,
			.unfinished = take_unfinished,
			.stack = take_stack,
			.mmap = take_mmap,
			.comm = take_comm,
			.ksymbol = take_ksymbol,
			.wake = take_wake,
			.sightings = take_sightings } };
	struct side sides[2] = { 0 };
	size_t first;

	if (size < HEADER_BYTES || size > HEADER_BYTES + 2 * DATA_BYTES)
		return 0;
	first = (bytes[2] | (size_t)bytes[3] << 8) % (size - HEADER_BYTES + 1);
	fill(&sides[0], (bytes[0] | (uint64_t)bytes[1] << 8) & ~UINT64_C(7), bytes + HEADER_BYTES,
		first, bytes[0] % 2 ? BEHIND_BYTES : 0);
	fill(&sides[1], 0, bytes + HEADER_BYTES + first, size - HEADER_BYTES - first, 0);
	run(sides, &events);
	free(sides[0].data);
	free(sides[1].data);
	return 0;
}
