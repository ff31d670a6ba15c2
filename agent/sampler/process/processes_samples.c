/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which generation a sample belongs to. The stream tells, in time order. But records may be lost;
 * then the kernel's count of a task's execs, which each sample carries, shows whether the program
 * is still the one in the table. A generation gets its exec id from the one before it (a fork
 * inherits it, an exec adds one), else from its first sample, but only while no record is missing.
 *
 * After a loss /proc is read. A sample from before the reading is of a program in the table if the
 * exec id is equal. Then the process has not executed another one since, but its mappings may have
 * changed: only those count that were known before and that /proc shows as well. Any other sample
 * from before the reading gets a generation of its own, without mappings.
 */
#include "agent/sampler/process/table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"

enum {
	/* How long after its exit record a thread may still be sampled. */
	EXIT_GRACE_NS = 100 * 1000 * 1000,
	/* How many earlier generations are searched for a late sample. */
	REPLACED_LOOKED_AT = 4,
};

/* How often one process's container is read again: its threads may be in control groups of their
 * own. */
static const uint64_t CGROUP_AGAIN_NS = 1000000000;

/* The generation of PID at TIME_NS as far as the stream tells, or NULL. */
static struct process *known(struct processes *ps, uint32_t pid, uint64_t time_ns)
{
	struct process *p = map_get_pointer(&ps->by_pid, pid);

	if (p && p->ended && (p->pid_lost || time_ns > p->ended_ns + EXIT_GRACE_NS))
		return NULL;
	return p;
}

/* ---- what is not sure ----------------------------------------------------------------------- */

/* /proc did not show P. */
static void miss(struct process *p, int error)
{
	/* After a shortage of descriptors or memory, or no answer, it may still be there. */
	p->stale = failure_is_transient(error);
	if (p->stale)
		return;
	p->unreadable = true;
	p->gone_ns = clock_monotonic_ns();
}

/* Begins a generation for S of which only the exec id is certain. */
static struct process *begin_unproven(struct processes *ps, const struct processes_sample *s)
{
	struct process *p = table_begin(ps, s->pid, 0, NULL);

	if (!p)
		return NULL;
	p->looked_up = true;
	p->exec_known = true;
	p->exec_id = s->exec_id;
	/* Pid 0 stands for the CPUs' idle threads, which /proc does not show. */
	p->kernel_thread = s->kernel_thread || s->pid == 0;
	p->unproven = !p->kernel_thread;
	return p;
}

/*
 * Begins such a generation for a pid that is unknown or runs another program now. /proc may show
 * S's program or a later one, which turns out when the stream has come so far. SHOWN: what /proc
 * showed already, is taken; NULL = it is read now.
 */
static struct process *begin_unknown(
	struct processes *ps, const struct processes_sample *s, struct shown *shown)
{
	struct process *p = begin_unproven(ps, s);
	int err = 0;

	if (!p) {
		table_shown_free(shown);
		return NULL;
	}
	if (!shown && s->pid) {
		file_ids_renew(ps->files);
		err = table_read(ps, s->pid, &shown);
	}
	p->shown = shown;
	if (err)
		miss(p, err);
	return p;
}

/* Ends P, the pid's generation until now, and begins an unknown one for S. */
static struct process *processes_samples_replace(
	struct processes *ps, struct process *p, const struct processes_sample *s)
{
	struct shown *shown = take(p->shown);

	if (!p->ended)
		table_supersede(ps, p, ps->time_ns);
	if (!shown)
		metrics_add(ps->options.metrics, METRIC_PROCESS_RESYNCS, 1);
	return begin_unknown(ps, s, shown);
}

/*
 * Records were lost since P was last known: reads /proc. The mappings of a process that has ended
 * by now cannot be recovered.
 */
static struct process *resync(
	struct processes *ps, struct process *p, const struct processes_sample *s)
{
	struct shown *shown = NULL;
	int err;

	metrics_add(ps->options.metrics, METRIC_PROCESS_RESYNCS, 1);
	file_ids_renew(ps->files);
	err = table_read(ps, p->pid, &shown);
	if (shown && !table_is_same_process(p, &shown->stat)) {
		table_supersede(ps, p, ps->time_ns);
		return begin_unknown(ps, s, shown);
	}
	if (table_doubt(p, shown)) {
		table_shown_free(shown);
		return NULL;
	}
	p->stale = false;
	p->looked_up = true;
	p->shown = shown;
	if (err)
		miss(p, err);
	return p;
}

/* ---- what is -------------------------------------------------------------------------------- */

/* Whether S belongs to P, which has its pid. Sets P's exec id from S if it is unknown. */
static bool is_of(struct process *p, const struct processes_sample *s)
{
	bool settled = process_is_settled(p);

	if (s->kernel_thread || p->kernel_thread)
		return true;
	if (s->executing && settled)
		return true;
	if (p->exec_known)
		return p->exec_id == s->exec_id;
	if (!settled)
		return false;
	p->exec_known = true;
	p->exec_id = s->exec_id;
	return true;
}

/* The generation before P that the late sample S belongs to; NULL if it is not known any more. */
static struct process *replaced_by(
	struct processes *ps, const struct process *p, const struct processes_sample *s)
{
	for (unsigned int i = 0; i < REPLACED_LOOKED_AT && p->replaced; i++) {
		struct process *before = map_get_pointer(&ps->by_number, p->replaced);

		if (!before || before->pid != s->pid || !before->ended)
			return NULL;
		if (before->exec_known && before->exec_id == s->exec_id)
			return before;
		p = before;
	}
	return NULL;
}

/* The generation of a late sample; P stays the current one. */
static struct process *begin_past(
	struct processes *ps, struct process *p, const struct processes_sample *s)
{
	struct process *past = replaced_by(ps, p, s);

	if (past)
		return past;
	past = begin_unproven(ps, s);
	if (!past)
		return NULL;
	past->sampled = true;
	table_end(ps, past, ps->time_ns);
	table_make_current(ps, p);
	return past;
}

/* The generation of S, if P has its pid at that time. */
static struct process *generation_of(
	struct processes *ps, struct process *p, const struct processes_sample *s)
{
	if (is_of(p, s))
		return p;
	if (p->exec_known && !p->ended && (int32_t)(s->exec_id - p->exec_id) < 0)
		return begin_past(ps, p, s);
	return processes_samples_replace(ps, p, s);
}

/*
 * A process that has moved to another control group is perhaps in another container. One that was
 * read before its first sample may have moved in between.
 */
static void see_cgroup(struct process *p, const struct processes_sample *s)
{
	if (!s->cgroup_id || s->cgroup_id == p->cgroup_id || p->kernel_thread)
		return;
	if (p->cgroup_id && s->time_ns < p->cgroup_ns + CGROUP_AGAIN_NS)
		return;
	p->cgroup_left |= p->cgroup_id != 0;
	p->cgroup_id = s->cgroup_id;
	p->cgroup_ns = s->time_ns;
	p->looked_up = false;
}

/* Samples before S may be those of the container that P was in. */
static void look_up(struct processes *ps, struct process *p, const struct processes_sample *s)
{
	char before[CONTAINER_ID_BYTES];

	memcpy(before, p->container_id, sizeof(before));
	table_look_up(ps, p);
	if (p->cgroup_left && strcmp(before, p->container_id) != 0) {
		p->moved_ns = s->time_ns;
		metrics_add(ps->options.metrics, METRIC_PROCESS_MOVES, 1);
	}
	if (p->looked_up)
		p->cgroup_left = false;
}

/* The generation that has the pid of S at that time, looked up in /proc if need be. */
static struct process *current(struct processes *ps, const struct processes_sample *s)
{
	const uint32_t *exec_id = s->executing ? NULL : &s->exec_id;
	struct process *p;

	table_catch_up(ps, s->pid, s->time_ns, exec_id);
	p = known(ps, s->pid, s->time_ns);
	if (p && (p->ended || !p->stale)) {
		if (!p->ended)
			see_cgroup(p, s);
		if (!p->looked_up && !p->ended)
			look_up(ps, p, s);
		if (p->hidden && !p->ended)
			table_show_hidden(ps, p, s->time_ns);
		return p;
	}
	p = p ? resync(ps, p, s) : begin_unknown(ps, s, NULL);
	if (!p)
		return NULL;
	table_catch_up(ps, s->pid, s->time_ns, exec_id);
	return known(ps, s->pid, s->time_ns);
}

struct process *processes_get(struct processes *ps, const struct processes_sample *s)
{
	struct process *p = current(ps, s);

	if (p)
		p = generation_of(ps, p, s);
	if (!p)
		return NULL;
	p->sampled = true;
	p->sampled_ns = MAX(p->sampled_ns, s->time_ns);
	if (p->unreadable)
		metrics_add(ps->options.metrics, METRIC_UNNAMED_GONE, 1);
	else if (p->unproven)
		metrics_add(ps->options.metrics, METRIC_UNNAMED_LOST_RECORDS, 1);
	return p;
}
