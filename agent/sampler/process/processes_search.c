/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a loss of records, a process is read again when it is sampled next. One that sleeps, or of
 * which nobody takes samples, is found here: each round goes through all of /proc, in steps.
 *
 * Records and samples that are on the way may be older than what /proc shows. So nothing applies
 * at once: a process of which records were lost is read in one round, and that counts when the
 * stream has passed the time of the reading. A process that is in no record at all has to be there
 * in the next round, too, and still to be unknown: then it has executed no other program since.
 */
#include <errno.h>

#include "agent/sampler/process/table.h"
#include "base/cleanup.h"
#include "base/failure.h"

enum {
	ROUNDS = 6, /* after a loss; two are enough, unless descriptors or memory are short */
	READ_AT_ONCE = 64, /* processes */
};

/* Longer than records wait in the rings. */
static const uint64_t STREAM_DELAY_NS = UINT64_C(900000000);

struct search_step {
	uint64_t now_ns;
	unsigned int left; /* processes to be read */
};

void table_search_begin(struct processes *ps)
{
	ps->search.rounds = ROUNDS;
	ps->search.after = 0;
	map_clear(&ps->search.unknown);
}

/* A process in no record. Returns whether it was read. */
static bool search_unknown(struct processes *ps, uint32_t pid)
{
	struct map *unknown = &ps->search.unknown;
	autoclose int pid_fd = -1;
	struct proc_stat stat;
	uint64_t start_ticks;

	if (proc_open(ps->options.proc_fd, pid, &pid_fd) || proc_read_stat(pid_fd, &stat))
		return false;
	if (map_get(unknown, pid, &start_ticks) && start_ticks == stat.start_ticks) {
		(void)map_remove(unknown, pid);
		(void)table_scan(ps, pid);
		return true;
	}
	ps->search.found |= !map_set(unknown, pid, stat.start_ticks);
	return false;
}

/* Records of P were lost. */
static void search_stale(struct processes *ps, struct process *p)
{
	struct shown *shown = NULL;
	int err = table_read(ps, p->pid, &shown);

	ps->search.found = true;
	if (shown && !table_is_same_process(p, &shown->stat)) {
		table_shown_free(shown);
		table_supersede(ps, p, ps->time_ns);
		return;
	}
	if (table_doubt(p, shown)) {
		table_shown_free(shown);
		return;
	}
	p->stale = err && failure_is_transient(err);
	p->shown = shown;
}

static int search_pid(struct processes *ps, uint32_t pid, void *context)
{
	struct process *p = table_live(ps, pid);
	struct search_step *step = context;

	if (pid <= ps->search.after || (p && !p->stale && !p->shown))
		return 0;
	if (!step->left)
		return -EAGAIN;
	ps->search.after = pid;
	if (!p) {
		step->left -= search_unknown(ps, pid);
	} else if (!p->shown) {
		step->left--;
		search_stale(ps, p);
	} else if (p->shown->time_ns + STREAM_DELAY_NS < step->now_ns) {
		table_catch_up(ps, pid, step->now_ns, NULL);
	} else {
		ps->search.found = true;
	}
	return 0;
}

void processes_search(struct processes *ps, uint64_t now_ns)
{
	struct search_step step = { .now_ns = now_ns, .left = READ_AT_ONCE };

	if (!ps->search.rounds || table_each_pid(ps, search_pid, &step))
		return;
	ps->search.rounds = ps->search.found ? ps->search.rounds - 1 : 0;
	ps->search.after = 0;
	ps->search.found = false;
	if (!ps->search.rounds)
		map_clear(&ps->search.unknown);
}
