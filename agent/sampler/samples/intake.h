/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides whether a sample is wanted, which process generation it belongs to, and whether its user
 * stack can be trusted. Feeds side-band records to the process table; they and the samples must
 * come in time order. Logs, at a limited rate, why samples have no names.
 *
 * The result is an attributed sample, at once or when its walk is finished. Does not know windows,
 * profiles, symbols or rings.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/process/choosing.h"
#include "agent/sampler/samples/attributed_sample.h"
#include "agent/sampler/samples/pending_walks.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"

/* Why samples have no names: METRIC_UNNAMED_*. */
enum intake_unnamed {
	INTAKE_UNNAMED_GONE,
	INTAKE_UNNAMED_LOST_RECORDS,
	INTAKE_UNNAMED_LOST_MAPPING,
	INTAKE_UNNAMED_REASONS,
};

struct intake_options {
	struct processes *processes; /* borrowed, as all pointers here */
	struct unwind *unwind; /* NULL: the kernel walks by frame pointer only */
	struct pending_walks *walks;
	struct metrics *metrics;
	uint32_t follow_pid; /* only this process and those it forks; 0 = all */
	/* Returns raw stack ID of WINDOW; NULL if it was lost. */
	const struct abi_stack *(*raw_stack)(void *context, uint32_t window, uint64_t id);
	/*
	 * Samples of TGID are dropped (OUT) or wanted: the kernel need not ship walks that are
	 * dropped.
	 */
	void (*leave_out)(void *context, uint32_t tgid, bool out);
	/* P is not wanted: perhaps nothing of SAMPLE's control group is. */
	void (*unwanted)(void *context, const struct process *p, const struct abi_sample *sample);
	/* A sample of WINDOW taken at TIME_NS arrived; its process is determined next. */
	void (*sampled)(void *context, uint32_t window, uint64_t time_ns);
	/*
	 * SAMPLE belongs to P. Its attributed sample follows, at once or when its walk is finished.
	 */
	void (*taken)(void *context, struct process *p, const struct abi_sample *sample);
	void (*add)(void *context, const struct attributed_sample *sample);
	void *context;
};

struct intake {
	struct intake_options options;
	struct choosing choosing;
	struct map followed; /* pid → 1, if follow_pid is set */
	uint64_t first_sample_ns, newest_sample_ns; /* CLOCK_MONOTONIC; 0 = none yet */
	struct log_rate gap_log, resync_log, unnamed_log[INTAKE_UNNAMED_REASONS];
};

int intake_init(struct intake *i, const struct intake_options *options);
void intake_deinit(struct intake *i);
/* Takes only samples of processes that SELECTION wants (NULL = all). SELECTION is borrowed. */
void intake_select(struct intake *i, const struct selection *selection);
/* As choosing_take(). */
bool intake_choose(struct intake *i, struct container_choices *choices);

/* Samples and side-band records, in time order. */
void intake_sample(struct intake *i, uint64_t time_ns, const struct abi_sample *sample);
void intake_unfinished(struct intake *i, uint64_t time_ns, const struct abi_unfinished *unfinished);
void intake_sightings(struct intake *i, uint64_t time_ns, const struct abi_sightings *sightings);
void intake_comm(struct intake *i, uint64_t time_ns, uint32_t tgid, uint32_t tid, const char *comm,
	bool exec);
void intake_fork(struct intake *i, uint64_t time_ns, uint32_t tgid, uint32_t tid,
	uint32_t parent_tgid, uint32_t parent_tid);
void intake_mmap(struct intake *i, const struct processes_mmap *mmap);
void intake_exit(struct intake *i, uint64_t time_ns, uint32_t tgid, uint32_t tid);
/* Records between TIME_NS and UNTIL_NS were lost, or may have been. */
void intake_lost(struct intake *i, uint64_t time_ns, uint64_t until_ns);

/* Times of the first and the newest sample of a followed process, CLOCK_MONOTONIC; 0 = none yet. */
uint64_t intake_first_sample_ns(const struct intake *i);
uint64_t intake_newest_sample_ns(const struct intake *i);
