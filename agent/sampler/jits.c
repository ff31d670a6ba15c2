/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf maps of the processes that were sampled. A map belongs to a program image and not to a pid:
 * the file is called by the pid, so the next program in that process, or a later process, writes
 * the same one. We learn of an exec only when its record comes, up to half a second late, and the
 * file may have been written anew by then. So a map is read while its program runs, not when the
 * window is reported; what was read after an exec whose record came later is taken back; and what
 * was last written before a program began is not its own.
 *
 * Most processes with code in anonymous memory have no map: they are asked less and less often.
 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/process/open_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/host.h"

/* Between two readings while samples come, and while one report is made. */
static const uint64_t READ_NS = UINT64_C(1000000000);
static const uint64_t REPORT_NS = UINT64_C(100000000);
/* Between two looks for a file that is not there. */
static const uint64_t FIRST_MISS_NS = UINT64_C(100000000);
static const uint64_t LONGEST_MISS_NS = UINT64_C(10000000000);
/* Records that are older than this do not tell which program runs now. */
static const uint64_t LATE_NS = UINT64_C(900000000);
/* A pid is not used again within this time. */
static const uint64_t PID_REUSE_NS = UINT64_C(100000000);
enum {
	COST_FACTOR = 50, /* of the time that reading takes, before the next */
	REPORT_COST_FACTOR = 5,
};

void sampler_jit_deinit(struct sampler_jit *jit)
{
	if (jit->fd >= 0)
		close(take_fd(&jit->fd));
	perf_map_destroy(take(jit->map));
	perf_map_destroy(take(jit->previous));
}

/* CLOCK_REALTIME at which P's program began, not later than that; 0 = not known. */
static uint64_t program_began_ns(const struct process *p)
{
	uint64_t now_ns = clock_monotonic_ns(), boot_ns = clock_read_ns(CLOCK_BOOTTIME);
	uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);

	/* The monotonic clock stands still while the machine sleeps: that may have been since. */
	if (p->start_ns)
		return clock_real_ns() - (now_ns - p->start_ns) - (boot_ns - now_ns);
	return p->start_ticks ? clock_real_ns() - (boot_ns - p->start_ticks * tick_ns) : 0;
}

static void count_refused(struct sampler *sampler, struct sampler_jit *jit)
{
	if (!jit->refused)
		metrics_add(&sampler->metrics, METRIC_PERF_MAP_REFUSED, 1);
	jit->refused = true;
}

/* The file that has the name now. A JIT may have put another in its place, or have removed it. */
static int open_newest(struct sampler *sampler, struct process *p, struct sampler_jit *jit)
{
	uint32_t namespace_pid = process_namespace_pid(sampler->processes, p);
	int fd, err = -EMFILE;

	if (namespace_pid)
		err = open_perf_map(sampler->proc_fd, p->pid, namespace_pid, &fd);
	if (err)
		return err;
	if (jit->fd >= 0)
		close(jit->fd);
	jit->fd = fd;
	return 0;
}

/* The file was written anew: by P's program, or by one whose exec we have not heard of. */
static int set_aside(struct sampler_jit *jit)
{
	struct perf_map *map;
	int err = perf_map_renew(jit->map, &map);

	if (err)
		return err;
	perf_map_destroy(jit->previous);
	jit->previous = jit->map;
	jit->map = map;
	jit->rewritten_ns = clock_monotonic_ns();
	return 0;
}

static int prepare_map(const struct process *p, struct sampler_jit *jit)
{
	int err = 0;

	if (!jit->map) {
		err = perf_map_create(&jit->map);
		if (!err)
			perf_map_set_beginning(jit->map, program_began_ns(p));
	} else if (!perf_map_continues(jit->map, jit->fd)) {
		err = set_aside(jit);
	}
	return err;
}

static void read_map(struct sampler *sampler, const struct process *p, struct sampler_jit *jit)
{
	uint64_t begun_ns = clock_monotonic_ns(), dropped;
	int err = prepare_map(p, jit);

	if (err)
		return;
	dropped = perf_map_dropped(jit->map);
	jit->before = perf_map_mark(jit->map);
	err = perf_map_update(jit->map, jit->fd);
	if (err && err != -EAGAIN)
		count_refused(sampler, jit);
	metrics_add(
		&sampler->metrics, METRIC_PERF_MAP_DROPPED, perf_map_dropped(jit->map) - dropped);
	jit->complete = p->ended && err != -EAGAIN;
	jit->read_ns = clock_monotonic_ns();
	jit->cost_ns = jit->read_ns - begun_ns;
}

static bool is_absence(int err)
{
	return err == -ENOENT || err == -ESRCH;
}

static void look(struct sampler *sampler, struct process *p, struct sampler_jit *jit)
{
	int err = open_newest(sampler, p, jit);

	if (err && !is_absence(err) && !failure_is_shortage(err))
		count_refused(sampler, jit);
	if (jit->fd < 0) {
		jit->look_ns = clock_monotonic_ns() +
			       failure_pause_ns(++jit->misses, FIRST_MISS_NS, LONGEST_MISS_NS);
		return;
	}
	jit->misses = 0;
	read_map(sampler, p, jit);
	jit->look_ns = clock_monotonic_ns() + MAX(READ_NS, COST_FACTOR * jit->cost_ns);
}

void sampler_jit_hit(struct sampler *sampler, struct process *p)
{
	struct sampler_process *data = sampler_process_data(p);

	if (!data || p->ended)
		return;
	data->jit.sampled_ns = sampler->newest_sample_ns;
	if (sampler->newest_sample_ns < data->jit.look_ns ||
		clock_monotonic_ns() - sampler->newest_sample_ns > LATE_NS)
		return;
	/* It was this program that wrote the file anew. */
	if (data->jit.sampled_ns > data->jit.rewritten_ns)
		perf_map_destroy(take(data->jit.previous));
	look(sampler, p, &data->jit);
}

void sampler_jit_forked(struct sampler *sampler, struct process *parent, struct process *child)
{
	const struct sampler_process *from = parent->owner_data;
	struct sampler_process *data;
	struct perf_map *map;

	if (!from || !from->jit.map)
		return;
	if (clock_monotonic_ns() >= from->jit.look_ns)
		sampler_jit_hit(sampler, parent);
	if (perf_map_fork(from->jit.map, &map))
		return;
	perf_map_set_beginning(map, program_began_ns(child));
	data = sampler_process_data(child);
	if (data)
		data->jit.map = map;
	else
		perf_map_destroy(map);
}

/*
 * Another program may have written the file since, at a time that we do not know where its exec
 * record is lost. What was read before the last sample of this one is its own.
 */
void sampler_jit_ended(struct process *p)
{
	struct sampler_process *data = p->owner_data;
	struct sampler_jit *jit = data ? &data->jit : NULL;

	if (!jit || !p->superseded)
		return;
	if (jit->fd >= 0)
		close(take_fd(&jit->fd));
	if (jit->previous && jit->rewritten_ns > jit->sampled_ns) {
		perf_map_destroy(jit->map);
		jit->map = take(jit->previous);
	} else if (jit->map && jit->read_ns > jit->sampled_ns) {
		perf_map_roll_back(jit->map, &jit->before);
	}
}

/* Of a process that has ended: what it wrote last, unless it was not the last to write. */
static bool is_its_last(const struct process *p, const struct sampler_jit *jit)
{
	uint64_t ended_ns = clock_real_ns() - (clock_monotonic_ns() - p->ended_ns);
	struct stat st;

	if (jit->map && perf_map_is_unchanged(jit->map, jit->fd))
		return true;
	return !host_fstat(jit->fd, &st) &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec <=
		       ended_ns + PID_REUSE_NS;
}

static bool is_due_in_report(const struct sampler_jit *jit)
{
	uint64_t pause_ns = MAX(REPORT_NS, REPORT_COST_FACTOR * jit->cost_ns);
	uint64_t last_ns = jit->fd >= 0 ? jit->read_ns : jit->looked_ns;

	return clock_monotonic_ns() - last_ns >= pause_ns;
}

const struct perf_map *sampler_perf_map_of(void *context, struct process *p)
{
	struct sampler *sampler = context;
	struct sampler_process *data = sampler_process_data(p);
	struct sampler_jit *jit = data ? &data->jit : NULL;

	if (!jit)
		return NULL;
	if (is_due_in_report(jit)) {
		jit->looked_ns = clock_monotonic_ns();
		if (!p->ended)
			look(sampler, p, jit);
		else if (jit->fd >= 0 && !jit->complete && is_its_last(p, jit))
			read_map(sampler, p, jit);
	}
	return jit->map;
}

void sampler_jit_let_go(struct process *p)
{
	struct sampler_process *data = p->owner_data;
	struct sampler_jit *jit = data ? &data->jit : NULL;

	if (!jit || !jit->map || jit->fd < 0 ||
		(p->ended && !perf_map_is_unchanged(jit->map, jit->fd)))
		return;
	perf_map_destroy(take(jit->previous));
	perf_map_let_go(jit->map);
	jit->complete = false;
}
