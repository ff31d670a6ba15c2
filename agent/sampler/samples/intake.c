/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/samples/intake.h"

#include "bpf/abi/frame.h"

enum { FOLLOWED_LIMIT = 65536 };

/* How often the log repeats a message; the counters count each time. */
static const uint64_t LOG_INTERVAL_NS = UINT64_C(60) * 1000 * 1000 * 1000;

int intake_init(struct intake *i, const struct intake_options *options)
{
	*i = (struct intake){ .options = *options };
	map_init(&i->followed, FOLLOWED_LIMIT);
	choosing_init(&i->choosing);
	return options->follow_pid ? map_set(&i->followed, options->follow_pid, 1) : 0;
}

void intake_deinit(struct intake *i)
{
	map_deinit(&i->followed);
	choosing_deinit(&i->choosing);
}

void intake_select(struct intake *i, const struct selection *selection)
{
	choosing_select(&i->choosing, selection);
}

bool intake_choose(struct intake *i, struct container_choices *choices)
{
	return choosing_take(&i->choosing, choices);
}

uint64_t intake_first_sample_ns(const struct intake *i)
{
	return i->first_sample_ns;
}

uint64_t intake_newest_sample_ns(const struct intake *i)
{
	return i->newest_sample_ns;
}

static const struct abi_stack *intake_raw_user_stack(
	const struct intake *i, const struct abi_sample *s)
{
	return i->options.raw_stack(i->options.context, s->window, s->user_stack);
}

/* ---- why samples have no names -------------------------------------------------------------- */

/* Whether a frame of S lies outside of P's certain mappings. */
static bool intake_has_uncertain_frame(
	const struct intake *i, const struct process *p, const struct abi_sample *s)
{
	const struct abi_stack *raw = intake_raw_user_stack(i, s);
	struct abi_frame frame;
	uint32_t at = 0;

	if (!raw)
		return false;
	for (uint32_t n = 0; abi_frame_read(raw->frames, raw->frame_count, raw->flags, &at, &frame);
		n++)
		if (frame.kind == ABI_FRAME_PC &&
			!mappings_find(p->mappings, frame.address - (n > 0)))
			return true;
	return false;
}

static void intake_log_unnamed(struct intake *i, const struct process *p, enum intake_unnamed why)
{
	static const char *const reasons[] = {
		[INTAKE_UNNAMED_GONE] = "process_gone",
		[INTAKE_UNNAMED_LOST_RECORDS] = "lost_records",
		[INTAKE_UNNAMED_LOST_MAPPING] = "lost_mapping",
	};

	if (log_rate_allows_every(&i->unnamed_log[why], LOG_INTERVAL_NS))
		log_warn("samples have no names because the code they ran is not known for certain",
			"pid=%u reason=%s", p->pid, reasons[why]);
}

/*
 * Counts and logs why S has no names. The process table itself counts samples of processes that are
 * gone and of uncertain programs.
 */
static void intake_report_unnamed(
	struct intake *i, const struct process *p, const struct abi_sample *s)
{
	if (s->flags & ABI_SAMPLE_EXECUTING)
		metrics_add(i->options.metrics, METRIC_UNNAMED_EXECUTING, 1);
	if (p->unreadable) {
		intake_log_unnamed(i, p, INTAKE_UNNAMED_GONE);
	} else if (p->unproven) {
		intake_log_unnamed(i, p, INTAKE_UNNAMED_LOST_RECORDS);
	} else if (!process_is_settled(p) && intake_has_uncertain_frame(i, p, s)) {
		metrics_add(i->options.metrics, METRIC_UNNAMED_LOST_MAPPING, 1);
		intake_log_unnamed(i, p, INTAKE_UNNAMED_LOST_MAPPING);
	}
}

/* ---- the process of a sample ---------------------------------------------------------------- */

static bool intake_follows(const struct intake *i, uint32_t pid)
{
	uint64_t one;

	return !i->options.follow_pid || map_get(&i->followed, pid, &one);
}

static void intake_leave_out(struct intake *i, uint32_t tgid, bool out)
{
	i->options.leave_out(i->options.context, tgid, out);
}

/* As processes_get(); logs that /proc was read again after a loss. */
static struct process *intake_get_process(
	struct intake *i, uint64_t time_ns, const struct abi_sample *s)
{
	const uint64_t resyncs = metrics_get(i->options.metrics, METRIC_PROCESS_RESYNCS);
	const struct processes_sample sample = {
		.time_ns = time_ns,
		.pid = s->tgid,
		.exec_id = s->exec_id,
		.executing = s->flags & ABI_SAMPLE_EXECUTING,
		.cgroup_id = s->cgroup_id,
		.kernel_thread = s->flags & ABI_SAMPLE_KTHREAD,
	};
	struct process *p = processes_get(i->options.processes, &sample);

	if (metrics_get(i->options.metrics, METRIC_PROCESS_RESYNCS) > resyncs &&
		log_rate_allows_every(&i->resync_log, LOG_INTERVAL_NS))
		log_warn("a process was read again from /proc because records of it may have been "
			 "lost",
			"pid=%u", s->tgid);
	if (!p)
		metrics_add(i->options.metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	return p;
}

/* Whether a sample of P is wanted, or may turn out to be. */
static bool intake_wants(
	struct intake *i, uint64_t time_ns, struct process *p, const struct abi_sample *s)
{
	enum choosing_answer answer;

	if (!choosing_is_needed(&i->choosing))
		return true;
	answer = choosing_of(&i->choosing, p, time_ns);
	if (answer == CHOICE_OPEN)
		p->open = true;
	if (answer != CHOICE_UNWANTED)
		return true;
	metrics_add(i->options.metrics, METRIC_SAMPLES_NOT_SELECTED, 1);
	i->options.unwanted(i->options.context, p, s);
	return false;
}

/* The process of a sample; NULL if the sample is not wanted, or for lack of memory. */
static struct process *intake_sampled_process(
	struct intake *i, uint64_t time_ns, const struct abi_sample *s)
{
	struct process *p;

	if (!intake_follows(i, s->tgid)) {
		intake_leave_out(i, s->tgid, true);
		return NULL;
	}
	if (!i->first_sample_ns)
		i->first_sample_ns = time_ns;
	i->newest_sample_ns = time_ns;
	i->options.sampled(i->options.context, s->window, time_ns);
	p = intake_get_process(i, time_ns, s);
	if (p && !intake_wants(i, time_ns, p, s)) {
		intake_leave_out(i, s->tgid, true);
		return NULL;
	}
	intake_leave_out(i, s->tgid, false);
	return p;
}

static struct process *intake_take(struct intake *i, uint64_t time_ns, const struct abi_sample *s)
{
	struct process *p = intake_sampled_process(i, time_ns, s);

	if (!p)
		return NULL;
	i->options.taken(i->options.context, p, s);
	intake_report_unnamed(i, p, s);
	return p;
}

/* ---- samples -------------------------------------------------------------------------------- */

/*
 * Whether the kernel walked with the tables of an earlier program of the process. Then only the
 * first frame is certain, if it is a pc.
 */
static bool intake_is_stale(const struct process *p, const struct abi_sample *s)
{
	return s->unwind_generation && s->unwind_generation != p->number;
}

static void intake_add_stale(struct intake *i, struct process *p, const struct abi_sample *s)
{
	const struct abi_stack *raw = intake_raw_user_stack(i, s);
	struct unwind_stack first = { .end = ABI_UNWIND_UNKNOWN_MAPPING };
	struct abi_frame frame;
	uint32_t at = 0;

	metrics_add(i->options.metrics, METRIC_UNWIND_STALE, 1);
	if (raw && abi_frame_read(raw->frames, raw->frame_count, raw->flags, &at, &frame) &&
		frame.kind == ABI_FRAME_PC) {
		first.frames[0] = frame.address;
		first.flags = raw->flags & ABI_STACK_CALL;
		first.count = 1;
	}
	i->options.add(i->options.context, &(struct attributed_sample){
						   .process = p,
						   .record = s,
						   .walked = &first,
						   .mappings = p->mappings,
					   });
}

/* Loads what the kernel lacked, for the next walk of P. */
static void intake_update_tables(
	const struct intake *i, const struct process *p, const struct abi_sample *s)
{
	struct unwind *unwind = i->options.unwind;

	if (!unwind)
		return;
	if (s->unwind_missed)
		unwind_want(unwind, s->unwind_missed - 1);
	if (process_is_settled(p))
		(void)unwind_sync(unwind, p, s->exec_id);
}

void intake_sample(struct intake *i, uint64_t time_ns, const struct abi_sample *sample)
{
	struct process *p = intake_take(i, time_ns, sample);

	if (!p)
		return;
	if (intake_is_stale(p, sample))
		intake_add_stale(i, p, sample);
	else
		i->options.add(i->options.context, &(struct attributed_sample){
							   .process = p,
							   .record = sample,
						   });
	intake_update_tables(i, p, sample);
}

/* Reports the mapping of a file that BPF does not know yet, with all that identifies the file. */
static void intake_see_mapping(
	struct intake *i, uint64_t time_ns, uint32_t tgid, const struct abi_unwind_rest *rest)
{
	const struct sighting sighting = {
		.pc = rest->pc - (rest->is_return ? 1 : 0),
		.seen = unwind_seen(&rest->mapping),
	};

	if (rest->mapping.end && intake_follows(i, tgid))
		processes_seen(i->options.processes, time_ns, tgid, &sighting, 1);
}

void intake_unfinished(struct intake *i, uint64_t time_ns, const struct abi_unfinished *unfinished)
{
	const struct abi_sample *s = &unfinished->sample;
	struct process *p;

	intake_see_mapping(i, time_ns, s->tgid, &unfinished->rest);
	p = intake_take(i, time_ns, s);
	if (!p)
		return;
	if (intake_is_stale(p, s))
		intake_add_stale(i, p, s);
	else
		pending_walks_finish(i->options.walks, p, unfinished, intake_raw_user_stack(i, s));
	intake_update_tables(i, p, s);
}

void intake_sightings(struct intake *i, uint64_t time_ns, const struct abi_sightings *sightings)
{
	struct sighting seen[ABI_SIGHTINGS];
	uint32_t count = sightings->count;

	if (!intake_follows(i, sightings->tgid))
		return;
	for (uint32_t n = 0; n < count; n++) {
		seen[n].pc = sightings->of[n].pc;
		seen[n].seen = unwind_sighting(&sightings->of[n]);
	}
	processes_seen(i->options.processes, time_ns, sightings->tgid, seen, count);
}

/* ---- side-band ------------------------------------------------------------------------------ */

void intake_mmap(struct intake *i, const struct processes_mmap *mmap)
{
	processes_mmap(i->options.processes, mmap);
}

void intake_comm(struct intake *i, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm,
	bool exec)
{
	processes_comm(i->options.processes, time_ns, tgid, tid, comm, exec);
	intake_leave_out(i, tgid, !intake_follows(i, tgid));
}

/* A followed pid may be reused by a process that is not to be followed. */
static void intake_follow_fork(struct intake *i, uint32_t child, uint32_t parent)
{
	if (!intake_follows(i, parent))
		(void)map_remove(&i->followed, child);
	else if (i->options.follow_pid && map_set(&i->followed, child, 1))
		metrics_add(i->options.metrics, METRIC_PROCESSES_REFUSED, 1);
	intake_leave_out(i, child, !intake_follows(i, child));
}

void intake_fork(struct intake *i, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid)
{
	if (tgid != parent_tgid)
		intake_follow_fork(i, tgid, parent_tgid);
	processes_fork(i->options.processes, time_ns, tgid, tid, parent_tgid, parent_tid);
}

void intake_exit(struct intake *i, uint64_t time_ns, uint32_t tgid, uint32_t tid)
{
	processes_exit(i->options.processes, time_ns, tgid, tid);
}

void intake_lost(struct intake *i, uint64_t time_ns, uint64_t until_ns)
{
	if (log_rate_allows_every(&i->gap_log, LOG_INTERVAL_NS))
		log_warn("records of processes and mappings were lost, or may have been: reading "
			 "/proc instead",
			"gap_ms=%llu", (unsigned long long)(until_ns - time_ns) / 1000000);
	processes_lost(i->options.processes, time_ns, until_ns);
}
