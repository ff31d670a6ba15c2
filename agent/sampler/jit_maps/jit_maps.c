/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/jit_maps/jit_maps.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/process/open_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/map.h"

/* Pause between two readings, while samples arrive and while a report is made. */
static const uint64_t READ_NS = UINT64_C(1000000000);
static const uint64_t REPORT_NS = UINT64_C(100000000);
/* Pause between two looks for a missing file. */
static const uint64_t FIRST_MISS_NS = UINT64_C(100000000);
static const uint64_t LONGEST_MISS_NS = UINT64_C(10000000000);
/* Records that are older than this do not tell which program runs now. */
static const uint64_t LATE_NS = UINT64_C(900000000);
/* A pid is not reused within this time. */
static const uint64_t PID_REUSE_NS = UINT64_C(100000000);
enum {
	COST_FACTOR = 50, /* pause before the next reading, in durations of the last one */
	REPORT_COST_FACTOR = 5,
};

/* The map of one program image. All times are CLOCK_MONOTONIC. */
struct jit_map {
	const struct process *process; /* borrowed until jit_maps_forget() */
	int fd; /* -1 = none; opened when a frame without a file is seen */
	struct perf_map *map; /* NULL = none; a forked child may have one without a file */
	uint64_t look_ns; /* when to look for the file, or read it, again */
	uint64_t looked_ns; /* when a report did so last */
	unsigned int misses; /* times in a row that the file was missing */
	bool refused; /* it cannot be opened or read, which is counted */
	bool complete; /* the process has ended, and all it wrote is read */
	uint64_t sampled_ns; /* the program's last sample with such a frame */
	uint64_t read_ns, cost_ns; /* when it was read last, and how long that took */
	struct perf_map_mark before; /* what the map held before that reading */
	/* The map before the file was rewritten, kept while that may have been another program. */
	struct perf_map *previous;
	uint64_t rewritten_ns;
};

struct jit_maps {
	struct jit_maps_options options;
	struct map by_process; /* generation number → struct jit_map */
};

/* ---- the table ------------------------------------------------------------------------------ */

static void jit_map_close(struct jit_map *jit)
{
	if (jit->fd >= 0)
		close(take_fd(&jit->fd));
}

static void jit_map_destroy(struct jit_map *jit)
{
	jit_map_close(jit);
	perf_map_destroy(jit->map);
	perf_map_destroy(jit->previous);
	free(jit);
}

static struct jit_map *jit_maps_find(const struct jit_maps *maps, const struct process *p)
{
	return map_get_pointer(&maps->by_process, p->number);
}

/* Creates the entry on first use. NULL if out of memory or the table is full. */
static struct jit_map *jit_maps_make(struct jit_maps *maps, const struct process *p)
{
	struct jit_map *jit = jit_maps_find(maps, p);

	if (jit) {
		assert(jit->process == p);
		return jit;
	}
	jit = calloc(1, sizeof(*jit));
	if (!jit)
		return NULL;
	jit->process = p;
	jit->fd = -1;
	if (map_set_pointer(&maps->by_process, p->number, jit)) {
		metrics_add(maps->options.metrics, METRIC_PERF_MAP_REFUSED, 1);
		free(jit);
		return NULL;
	}
	return jit;
}

static struct jit_map *jit_maps_next(const struct jit_maps *maps, size_t *iterator)
{
	uint64_t number, pointer;

	return map_next(&maps->by_process, iterator, &number, &pointer)
		       ? (struct jit_map *)(uintptr_t)pointer
		       : NULL;
}

int jit_maps_create(const struct jit_maps_options *options, struct jit_maps **ret_maps)
{
	struct jit_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	maps->options = *options;
	map_init(&maps->by_process, options->limit);
	*ret_maps = maps;
	return 0;
}

void jit_maps_destroy(struct jit_maps *maps)
{
	struct jit_map *jit;
	size_t iterator = 0;

	if (!maps)
		return;
	while ((jit = jit_maps_next(maps, &iterator)))
		jit_map_destroy(jit);
	map_deinit(&maps->by_process);
	free(maps);
}

void jit_maps_forget(struct jit_maps *maps, const struct process *p)
{
	struct jit_map *jit = jit_maps_find(maps, p);

	if (!jit)
		return;
	map_remove(&maps->by_process, p->number);
	jit_map_destroy(jit);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* CLOCK_REALTIME at which P's program began, or earlier; 0 = unknown. */
static uint64_t jit_program_began_ns(const struct process *p)
{
	uint64_t now_ns = clock_monotonic_ns(), boot_ns = clock_read_ns(CLOCK_BOOTTIME);
	uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);

	/* The monotonic clock stops during suspend, which may have happened since. */
	if (p->start_ns)
		return clock_real_ns() - (now_ns - p->start_ns) - (boot_ns - now_ns);
	return p->start_ticks ? clock_real_ns() - (boot_ns - p->start_ticks * tick_ns) : 0;
}

static void jit_map_count_refused(struct jit_maps *maps, struct jit_map *jit)
{
	if (!jit->refused)
		metrics_add(maps->options.metrics, METRIC_PERF_MAP_REFUSED, 1);
	jit->refused = true;
}

/* Opens the file that has the name now: a JIT may have replaced or removed the earlier one. */
static int jit_map_open_newest(struct jit_maps *maps, struct process *p, struct jit_map *jit)
{
	uint32_t namespace_pid = process_namespace_pid(maps->options.processes, p);
	int fd, err = -EMFILE;

	if (namespace_pid)
		err = open_perf_map(maps->options.proc_fd, p->pid, namespace_pid, &fd);
	if (err)
		return err;
	jit_map_close(jit);
	jit->fd = fd;
	return 0;
}

/* The file was rewritten: by its own program, or by one whose exec we do not know of yet. */
static int jit_map_set_aside(struct jit_map *jit)
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

static int jit_map_prepare(const struct process *p, struct jit_map *jit)
{
	int err = 0;

	if (!jit->map) {
		err = perf_map_create(&jit->map);
		if (!err)
			perf_map_set_beginning(jit->map, jit_program_began_ns(p));
	} else if (!perf_map_continues(jit->map, jit->fd)) {
		err = jit_map_set_aside(jit);
	}
	return err;
}

static void jit_map_read(struct jit_maps *maps, const struct process *p, struct jit_map *jit)
{
	uint64_t begun_ns = clock_monotonic_ns(), dropped;
	int err = jit_map_prepare(p, jit);

	if (err)
		return;
	dropped = perf_map_dropped(jit->map);
	jit->before = perf_map_mark(jit->map);
	err = perf_map_update(jit->map, jit->fd);
	if (err && err != -EAGAIN)
		jit_map_count_refused(maps, jit);
	metrics_add(maps->options.metrics, METRIC_PERF_MAP_DROPPED,
		perf_map_dropped(jit->map) - dropped);
	jit->complete = p->ended && err != -EAGAIN;
	jit->read_ns = clock_monotonic_ns();
	jit->cost_ns = jit->read_ns - begun_ns;
}

static bool jit_is_absence(int err)
{
	return err == -ENOENT || err == -ESRCH;
}

static void jit_map_look(struct jit_maps *maps, struct process *p, struct jit_map *jit)
{
	int err = jit_map_open_newest(maps, p, jit);

	if (err && !jit_is_absence(err) && !failure_is_shortage(err))
		jit_map_count_refused(maps, jit);
	if (jit->fd < 0) {
		jit->look_ns = clock_monotonic_ns() +
			       failure_pause_ns(++jit->misses, FIRST_MISS_NS, LONGEST_MISS_NS);
		return;
	}
	jit->misses = 0;
	jit_map_read(maps, p, jit);
	jit->look_ns = clock_monotonic_ns() + MAX(READ_NS, COST_FACTOR * jit->cost_ns);
}

/* ---- samples and reports --------------------------------------------------------------------- */

void jit_maps_hit(struct jit_maps *maps, struct process *p, uint64_t sample_ns)
{
	struct jit_map *jit = jit_maps_make(maps, p);

	if (!jit || p->ended)
		return;
	jit->sampled_ns = sample_ns;
	if (sample_ns < jit->look_ns || clock_monotonic_ns() - sample_ns > LATE_NS)
		return;
	/* Sampled since, so it was this program that rewrote the file. */
	if (jit->sampled_ns > jit->rewritten_ns)
		perf_map_destroy(take(jit->previous));
	jit_map_look(maps, p, jit);
}

void jit_maps_forked(
	struct jit_maps *maps, struct process *parent, struct process *child, uint64_t sample_ns)
{
	const struct jit_map *from = jit_maps_find(maps, parent);
	struct jit_map *jit;
	struct perf_map *map;

	if (!from || !from->map)
		return;
	if (clock_monotonic_ns() >= from->look_ns)
		jit_maps_hit(maps, parent, sample_ns);
	if (perf_map_fork(from->map, &map))
		return;
	perf_map_set_beginning(map, jit_program_began_ns(child));
	jit = jit_maps_make(maps, child);
	if (jit) {
		assert(!jit->map);
		jit->map = map;
	} else {
		perf_map_destroy(map);
	}
}

/*
 * Another program may have written the file since, at an unknown time if its exec record was lost.
 * What was read before this program's last sample is its own.
 */
void jit_maps_ended(struct jit_maps *maps, const struct process *p)
{
	struct jit_map *jit = jit_maps_find(maps, p);

	if (!jit || !p->superseded)
		return;
	jit_map_close(jit);
	if (jit->previous && jit->rewritten_ns > jit->sampled_ns) {
		perf_map_destroy(jit->map);
		jit->map = take(jit->previous);
	} else if (jit->map && jit->read_ns > jit->sampled_ns) {
		perf_map_roll_back(jit->map, &jit->before);
	}
}

/* Whether the file is what P, which has ended, wrote last: nobody has written to it since. */
static bool jit_map_is_its_last(const struct process *p, const struct jit_map *jit)
{
	uint64_t ended_ns = clock_real_ns() - (clock_monotonic_ns() - p->ended_ns);
	struct stat st;

	if (jit->map && perf_map_is_unchanged(jit->map, jit->fd))
		return true;
	return !foreign_stat(jit->fd, &st) &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec <=
		       ended_ns + PID_REUSE_NS;
}

static bool jit_map_is_due_in_report(const struct jit_map *jit)
{
	uint64_t pause_ns = MAX(REPORT_NS, REPORT_COST_FACTOR * jit->cost_ns);
	uint64_t last_ns = jit->fd >= 0 ? jit->read_ns : jit->looked_ns;

	return clock_monotonic_ns() - last_ns >= pause_ns;
}

const struct perf_map *jit_maps_get(struct jit_maps *maps, struct process *p)
{
	struct jit_map *jit = jit_maps_make(maps, p);

	if (!jit)
		return NULL;
	if (jit_map_is_due_in_report(jit)) {
		jit->looked_ns = clock_monotonic_ns();
		if (!p->ended)
			jit_map_look(maps, p, jit);
		else if (jit->fd >= 0 && !jit->complete && jit_map_is_its_last(p, jit))
			jit_map_read(maps, p, jit);
	}
	return jit->map;
}

static bool jit_map_can_be_read_again(const struct jit_map *jit)
{
	return jit->map && jit->fd >= 0 &&
	       (!jit->process->ended || perf_map_is_unchanged(jit->map, jit->fd));
}

void jit_maps_shrink(struct jit_maps *maps)
{
	struct jit_map *jit;
	size_t iterator = 0;

	while ((jit = jit_maps_next(maps, &iterator))) {
		if (!jit_map_can_be_read_again(jit))
			continue;
		perf_map_destroy(take(jit->previous));
		perf_map_evict(jit->map);
		jit->complete = false;
	}
}
