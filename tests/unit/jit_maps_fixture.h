/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Perf maps of processes over a fake /proc. The clocks of the program stand still unless the test
 * advances them. Include in one file of a test program, as it replaces clock_gettime().
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/jit_maps/jit_maps.h"
#include "tests/unit/process_fixture.h"

enum { ROOM = 16 };

static const uint64_t MS = 1000000, SECOND = 1000000000;
/* Initial time of all clocks: long after the start of a fake process and before any file's time. */
static const uint64_t EPOCH = UINT64_C(1700000000000000000);

static uint64_t clock_ns;
static uint64_t suspended_ns; /* for so long; the monotonic clock has stopped meanwhile */

/* Replaces libc's function. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t now_ns = clock == CLOCK_MONOTONIC ? clock_ns : clock_ns + suspended_ns;

	*ret_time = (struct timespec){
		.tv_sec = (time_t)(now_ns / SECOND),
		.tv_nsec = (long)(now_ns % SECOND),
	};
	return 0;
}

struct jit_world {
	struct fixture *table;
	struct jit_maps *maps;
	char root[80]; /* of all processes */
};

static inline void make_maps(struct jit_world *w, size_t limit)
{
	jit_maps_destroy(w->maps);
	assert_int_equal(jit_maps_create(
				 &(struct jit_maps_options){
					 .proc_fd = w->table->proc.fd,
					 .processes = w->table->ps,
					 .metrics = &w->table->metrics,
					 .limit = limit,
				 },
				 &w->maps),
		0);
}

static inline int set_up(void **state)
{
	struct jit_world *w = calloc(1, sizeof(*w));
	char tmp[96];

	clock_ns = EPOCH;
	suspended_ns = 0;
	if (!w || process_set_up((void **)&w->table))
		return -1;
	snprintf(w->root, sizeof(w->root), "%s/root", w->table->proc.path);
	snprintf(tmp, sizeof(tmp), "%s/tmp", w->root);
	if (mkdir(w->root, 0755) || mkdir(tmp, 0755))
		return -1;
	make_maps(w, ROOM);
	*state = w;
	return 0;
}

static inline int tear_down(void **state)
{
	struct jit_world *w = *state;

	jit_maps_destroy(w->maps);
	process_tear_down((void **)&w->table);
	free(w);
	return 0;
}

/* A process PID whose root is the test's. */
static inline struct process *process_of(struct jit_world *w, uint32_t pid)
{
	struct process *p;

	show(w->table, pid, &w->table->program, (struct fake_process){ 0 });
	fake_proc_root(&w->table->proc, pid, w->root);
	assert_int_equal(processes_scan(w->table->ps, &pid, 1), 0);
	p = sampled(w->table, pid, later);
	assert_non_null(p);
	return p;
}

static inline void path_of(const struct jit_world *w, uint32_t pid, char path[128])
{
	snprintf(path, 128, "%s/tmp/perf-%" PRIu32 ".map", w->root, pid);
}

/* Writes it at the current time. HOW: fopen()'s mode. */
static inline void write_map(
	const struct jit_world *w, uint32_t pid, const char *how, const char *text)
{
	struct timespec now = { .tv_sec = (time_t)(clock_ns / SECOND),
		.tv_nsec = (long)(clock_ns % SECOND) };
	const struct timespec times[] = { now, now };
	char path[128];
	FILE *file;

	path_of(w, pid, path);
	file = fopen(path, how);
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fflush(file), 0);
	assert_int_equal(futimens(fileno(file), times), 0);
	assert_int_equal(fclose(file), 0);
}

static inline void remove_map(const struct jit_world *w, uint32_t pid)
{
	char path[128];

	path_of(w, pid, path);
	assert_int_equal(unlink(path), 0);
}

static inline void hit(struct jit_world *w, struct process *p)
{
	jit_maps_hit(w->maps, p, clock_ns);
}

static inline const char *name_at(const struct perf_map *map, uint64_t pc)
{
	const char *name;
	uint64_t start;

	return map && perf_map_lookup(map, pc, &name, &start) ? name : "";
}

/* In a report at the current time. */
static inline const char *name_of(struct jit_world *w, struct process *p, uint64_t pc)
{
	return name_at(jit_maps_get(w->maps, p), pc);
}

static inline void end(struct jit_world *w, struct process *p, bool superseded)
{
	p->ended = true;
	p->superseded = superseded;
	p->ended_ns = clock_ns;
	jit_maps_ended(w->maps, p);
}
