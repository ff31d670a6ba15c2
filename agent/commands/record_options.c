/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/commands/cache_directory.h"
#include "agent/commands/record.h"
#include "agent/commands/sampler_options.h"
#include "base/cleanup.h"

enum {
	MAX_HZ = 10000,
	MAX_CPUS = 4096,
};

static int refuse(const char *message)
{
	fprintf(stderr, "fathom record: %s\n", message);
	return -EINVAL;
}

static int plan_event(const struct config *config, struct collect_options *collect)
{
	const char *event = config_text(config, SETTING_event);
	bool rate = config_given(config, SETTING_frequency);
	bool period = config_given(config, SETTING_count);

	if (!strcmp(event, "cpu-clock"))
		collect->event = COLLECT_CPU_CLOCK;
	else if (!strcmp(event, "cycles"))
		collect->event = COLLECT_CYCLES;
	else
		return refuse("-e knows cpu-clock and cycles");
	if (rate && period)
		return refuse("-F and -c exclude each other: a rate, or a count of events");
	if (period) {
		collect->period = config_number(config, SETTING_count);
		/* The same ceiling as -F: no more than MAX_HZ samples a second. */
		if (collect->period < 1000000000 / MAX_HZ)
			return refuse("-c wants 100000 or more");
		return 0;
	}
	collect->frequency_hz = config_number(config, SETTING_frequency);
	if (collect->frequency_hz < 1 || collect->frequency_hz > MAX_HZ)
		return refuse("-F wants 1 to 10000 samples a second");
	return 0;
}

static int plan_tasks(const struct config *config, struct record_plan *plan)
{
	struct collect_options *collect = &plan->agent.collect;
	int err;

	err = config_numbers(config, SETTING_pid, ABI_MAX_PIDS, &plan->tgids, &collect->tgid_count);
	if (!err)
		err = config_numbers(
			config, SETTING_tid, ABI_MAX_PIDS, &plan->tids, &collect->tid_count);
	if (err)
		return err;
	collect->tgids = plan->tgids;
	collect->tids = plan->tids;
	collect->filter.filter_tgids = collect->tgid_count > 0;
	collect->filter.filter_tids = collect->tid_count > 0;
	plan->targeted = collect->tgid_count || collect->tid_count;
	for (size_t i = 0; i < collect->tgid_count; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%u", plan->tgids[i]);
		if (access(path, F_OK)) {
			fprintf(stderr, "fathom record: there is no process %u\n", plan->tgids[i]);
			return -ESRCH;
		}
	}
	return 0;
}

static int plan_cpus(const struct config *config, struct record_plan *plan)
{
	struct collect_options *collect = &plan->agent.collect;
	int err;

	err = config_numbers(
		config, SETTING_cpu, MAX_CPUS, &plan->cpu_numbers, &collect->cpu_count);
	if (err || !collect->cpu_count)
		return err;
	plan->cpus = calloc(collect->cpu_count, sizeof(*plan->cpus));
	if (!plan->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < collect->cpu_count; i++)
		plan->cpus[i] = (int)plan->cpu_numbers[i];
	collect->cpus = plan->cpus;
	return 0;
}

/*
 * How many levels the absolute PATH lies below the root of the cgroup v2 file system it is on; -1
 * when it is on another. That root is not always /sys/fs/cgroup: beside version 1 it is a folder
 * below. Cuts PATH short.
 */
static int cgroup_depth(char *path)
{
	struct statfs info;
	int depth = -1;

	while (*path && !statfs(path, &info) && info.f_type == CGROUP2_SUPER_MAGIC) {
		depth++;
		*strrchr(path, '/') = '\0';
	}
	return depth;
}

/* A cgroup v2 directory's inode is its id; its depth tells which ancestor to compare. */
static int plan_cgroup(const struct config *config, struct abi_sampler_config *filter)
{
	static const char root[] = "/sys/fs/cgroup";
	const char *text = config_text(config, SETTING_cgroup);
	autofree char *path = NULL, *resolved = NULL;
	struct stat info;
	int depth;

	if (!text)
		return 0;
	if (asprintf(&path, "%s%s%s", strncmp(text, root, strlen(root)) ? root : "",
		    *text == '/' ? "" : "/", text) < 0)
		return -ENOMEM;
	resolved = realpath(path, NULL);
	depth = resolved && !stat(resolved, &info) && S_ISDIR(info.st_mode) ? cgroup_depth(resolved)
									    : -1;
	if (depth < 0) {
		fprintf(stderr, "fathom record: -G %s: no such cgroup (v2) below %s\n", text, root);
		return -EINVAL;
	}
	filter->cgroup_id = info.st_ino;
	filter->cgroup_level = (uint32_t)depth + 1;
	return 0;
}

static int plan_stacks(const struct config *config, struct collect_options *collect)
{
	bool user = config_flag(config, SETTING_user), kernel = config_flag(config, SETTING_kernel);

	if (user && kernel)
		return refuse("-U and -K exclude each other");
	collect->user = !kernel;
	collect->kernel = !user;
	collect->filter.stacks = user     ? ABI_STACKS_USER
				 : kernel ? ABI_STACKS_KERNEL
					  : ABI_STACKS_BOTH;
	return 0;
}

static int plan_filter(const struct config *config, struct record_plan *plan)
{
	struct abi_sampler_config *filter = &plan->agent.collect.filter;
	const char *comm = config_text(config, SETTING_comm);
	int err;

	err = plan_tasks(config, plan);
	if (!err)
		err = plan_cpus(config, plan);
	if (!err)
		err = plan_cgroup(config, filter);
	if (!err)
		err = plan_stacks(config, &plan->agent.collect);
	if (err)
		return err;
	if (comm) {
		filter->filter_comm = 1;
		strncpy(filter->comm, comm, sizeof(filter->comm) - 1);
	}
	filter->goid = config_number(config, SETTING_goid);
	return 0;
}

int record_plan(const struct config *config, struct record_plan *ret_plan)
{
	struct record_plan plan = { .folded = config_flag(config, SETTING_folded) };
	int err;

	plan.duration_ns = config_number(config, SETTING_duration);
	if (config_given(config, SETTING_duration) && !plan.duration_ns)
		return refuse("-d wants more than 0 seconds");
	if (config_flag(config, SETTING_all) &&
		(config_given(config, SETTING_pid) || config_given(config, SETTING_tid)))
		return refuse("-a (all processes) excludes -p and -t");
	plan.output = config_text(config, SETTING_output);
	if (!plan.output)
		plan.output = plan.folded ? "-" : "fathom.pb.gz";
	err = cache_directory(config, &plan.cache_directory);
	if (!err)
		err = plan_event(config, &plan.agent.collect);
	if (!err)
		err = plan_filter(config, &plan);
	if (err) {
		record_plan_deinit(&plan);
		return err;
	}
	sampler_options_common(&plan.agent.collect.filter);
	plan.agent.cache_directory = plan.cache_directory;
	plan.agent.cache_limit_bytes = config_number(config, SETTING_cache_max_bytes);
	plan.agent.profile_limit_bytes = config_number(config, SETTING_memory_limit);
	plan.agent.memory_limit_bytes = config_number(config, SETTING_memory_limit);
	*ret_plan = plan;
	return 0;
}

void record_plan_deinit(struct record_plan *plan)
{
	free(plan->cache_directory);
	free(plan->tgids);
	free(plan->tids);
	free(plan->cpu_numbers);
	free(plan->cpus);
	*plan = (struct record_plan){ 0 };
}
