/* SPDX-License-Identifier: Apache-2.0 */
/* Wires collect to the rooms that consume its records. Nothing is decided here. */
#include "agent/sampler/sampler_internal.h"
#include "base/clock.h"

static void on_tick(void *context, uint64_t time_ns, const struct abi_tick *tick)
{
	struct sampler *sampler = context;

	intake_sample(&sampler->intake, time_ns, &tick->sample);
}

static void on_switch_out(void *context, uint64_t time_ns, const struct abi_switch_out *switch_out)
{
	struct sampler *sampler = context;

	intake_sample(&sampler->intake, time_ns, &switch_out->sample);
}

static void on_call(void *context, uint64_t time_ns, const struct abi_call *call)
{
	struct sampler *sampler = context;

	intake_sample(&sampler->intake, time_ns, &call->sample);
}

static void on_trace(void *context, const struct abi_trace_event *event)
{
	struct sampler *sampler = context;

	sampler->news = true;
	sampler_trace_event(context, event);
}

static void on_unfinished(void *context, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	struct sampler *sampler = context;

	/* A drain renews BPF's allowance for them (shared_maps_rings_read()). */
	sampler->news = true;
	intake_unfinished(&sampler->intake, time_ns, unfinished);
}

static void on_chunk(void *context, const struct abi_chunk *chunk)
{
	struct sampler *sampler = context;

	pending_walks_chunk(&sampler->walks, chunk);
}

static void on_returns(void *context, const struct abi_returns *returns)
{
	struct sampler *sampler = context;

	pending_walks_returns(&sampler->walks, returns);
}

static void on_sightings(void *context, uint64_t time_ns, const struct abi_sightings *sightings)
{
	struct sampler *sampler = context;

	intake_sightings(&sampler->intake, time_ns, sightings);
}

static void on_stack(void *context, const struct abi_stack *stack)
{
	const struct sampler *sampler = context;

	/*
	 * A stack that cannot be kept shows up as `frames lost` in its samples and is counted
	 * there.
	 */
	(void)windows_put_raw(sampler->windows, stack);
}

static void on_wake(void *context, uint64_t time_ns, const struct abi_wake *wake)
{
	const struct sampler *sampler = context;

	(void)time_ns;
	waits_woke(sampler->waits, wake);
}

static void on_mmap(void *context, const struct collect_mmap *m)
{
	struct sampler *sampler = context;

	intake_mmap(&sampler->intake, &(struct processes_mmap){
					      .time_ns = m->time_ns,
					      .pid = m->tgid,
					      .start = m->start,
					      .length = m->length,
					      .file_off = m->file_off,
					      .build_id = m->build_id,
					      .device = m->device,
					      .inode = m->inode,
					      .generation = m->generation,
					      .path = m->path,
				      });
}

static void on_comm(
	void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm, bool exec)
{
	struct sampler *sampler = context;

	intake_comm(&sampler->intake, time_ns, tgid, tid, comm, exec);
}

static void on_fork(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	struct sampler *sampler = context;

	intake_fork(&sampler->intake, time_ns, tgid, tid, parent_tgid, parent_tid);
}

static void on_exit(void *context, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	struct sampler *sampler = context;

	waits_thread_ended(sampler->waits, tid);
	sampler_trace_exit(sampler, tgid, tid);
	intake_exit(&sampler->intake, time_ns, tgid, tid);
}

static void on_ksymbol(
	void *context, uint64_t kaddr, uint32_t size, const char *name, bool bpf, bool gone)
{
	struct sampler *sampler = context;
	const struct kallsyms_event event = {
		.start = kaddr,
		.size = size,
		.bpf = bpf,
		.name = name,
		.time_ns = clock_monotonic_ns(),
	};

	(void)kernel_symbols_change(sampler->kernel_symbols, &event, gone);
}

static void on_lost(void *context, uint64_t time_ns, uint64_t until_ns)
{
	struct sampler *sampler = context;

	intake_lost(&sampler->intake, time_ns, until_ns);
}

void sampler_handlers(struct sampler *sampler, struct collect_handlers *ret_handlers)
{
	*ret_handlers = (struct collect_handlers){
		.tick = on_tick,
		.switch_out = on_switch_out,
		.call = on_call,
		.trace = on_trace,
		.unfinished = on_unfinished,
		.chunk = on_chunk,
		.returns = on_returns,
		.wake = on_wake,
		.sightings = on_sightings,
		.stack = on_stack,
		.mmap = on_mmap,
		.comm = on_comm,
		.fork = on_fork,
		.exit = on_exit,
		.ksymbol = on_ksymbol,
		.lost = on_lost,
		.context = sampler,
	};
}
