/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/sampling_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup_place.h"
#include "base/cleanup.h"
#include "base/pid_namespace.h"
#include "base/thread_group.h"

enum {
	MAX_CPUS = 4096,
	/* With less, caches and windows would be discarded all the time. */
	MIN_MEMORY_BYTES = 1 << 20,
};

/* The depth of our pid namespace: NSpid lists one pid per level. */
static uint32_t pidns_level(void)
{
	char line[256];
	uint32_t level = 0;
	bool initial;
	autofclose FILE *status = NULL;

	if (!pid_namespace_is_initial(&initial) && initial)
		return 0;
	status = fopen("/proc/self/status", "re");
	while (status && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "NSpid:", 6))
			continue;
		for (const char *at = line + 6; *at; at++)
			level += *at == '\t';
	}
	/* /proc shows levels from its mount's namespace down: we are at least one below the
	 * initial. */
	return level ? level : 1;
}

void sampling_options_common(struct abi_sampler_config *filter)
{
	filter->read_fibers = 1;
	filter->self_tgid = (uint32_t)getpid();
	filter->pidns_level = pidns_level();
}

/* ---- the command line ----------------------------------------------------------------------- */

static int sampling_options_refuse(const char *command, const char *message)
{
	fprintf(stderr, "fathom %s: %s\n", command, message);
	return -EINVAL;
}

static int sampling_options_check_process(const char *command, uint32_t pid)
{
	uint32_t tgid = thread_group_of(pid);

	if (tgid == pid)
		return 0;
	if (tgid)
		fprintf(stderr, "fathom %s: %u is a thread of process %u: -t %u, or -p %u\n",
			command, pid, tgid, pid, tgid);
	else
		fprintf(stderr, "fathom %s: there is no process %u\n", command, pid);
	return -ESRCH;
}

static int check_thread(const char *command, uint32_t tid, const struct sampling_options *o)
{
	uint32_t tgid = thread_group_of(tid);
	bool wanted = !o->collect.tgid_count;

	for (size_t i = 0; i < o->collect.tgid_count; i++)
		wanted |= o->tgids[i] == tgid;
	if (tgid && wanted)
		return 0;
	if (tgid)
		fprintf(stderr,
			"fathom %s: thread %u belongs to process %u, which -p does not select\n",
			command, tid, tgid);
	else
		fprintf(stderr, "fathom %s: there is no thread %u\n", command, tid);
	return -ESRCH;
}

/* Refuses ids that would sample nothing at all. */
static int check_tasks(const char *command, const struct sampling_options *o)
{
	int err = 0;

	for (size_t i = 0; !err && i < o->collect.tgid_count; i++)
		err = sampling_options_check_process(command, o->tgids[i]);
	for (size_t i = 0; !err && i < o->collect.tid_count; i++)
		err = check_thread(command, o->tids[i], o);
	return err;
}

static int take_tasks(const struct config *config, const char *command, struct sampling_options *o)
{
	struct collect_options *collect = &o->collect;
	int err;

	if (config_flag(config, SETTING_all) &&
		(config_given(config, SETTING_pid) || config_given(config, SETTING_tid)))
		return sampling_options_refuse(command, "-a (all processes) excludes -p and -t");
	err = config_numbers(config, SETTING_pid, ABI_MAX_PIDS, &o->tgids, &collect->tgid_count);
	if (!err)
		err = config_numbers(
			config, SETTING_tid, ABI_MAX_PIDS, &o->tids, &collect->tid_count);
	if (err)
		return err;
	collect->tgids = o->tgids;
	collect->tids = o->tids;
	collect->filter.filter_tgids = collect->tgid_count > 0;
	collect->filter.filter_tids = collect->tid_count > 0;
	o->targeted = collect->tgid_count || collect->tid_count;
	return check_tasks(command, o);
}

static int take_cpus(const struct config *config, struct sampling_options *o)
{
	struct collect_options *collect = &o->collect;
	int err;

	err = config_numbers(config, SETTING_cpu, MAX_CPUS, &o->cpu_numbers, &collect->cpu_count);
	if (err || !collect->cpu_count)
		return err;
	o->cpus = calloc(collect->cpu_count, sizeof(*o->cpus));
	if (!o->cpus)
		return -ENOMEM;
	for (size_t i = 0; i < collect->cpu_count; i++)
		o->cpus[i] = (int)o->cpu_numbers[i];
	collect->cpus = o->cpus;
	return 0;
}

static int take_cgroup(
	const struct config *config, const char *command, struct abi_sampler_config *filter)
{
	const char *text = config_text(config, SETTING_cgroup);
	struct cgroup_place place;
	int err = text ? cgroup_place_find(text, &place) : 0;

	if (err == -ENOENT) {
		fprintf(stderr, "fathom %s: -G %s: no such cgroup (v2) below " CGROUP_PLACES "\n",
			command, text);
		return -EINVAL;
	}
	if (text && !err) {
		filter->cgroup_id = place.id;
		filter->cgroup_level = place.level;
	}
	return err;
}

static int capture_stacks(
	const struct config *config, const char *command, struct collect_options *collect)
{
	bool user = config_flag(config, SETTING_user), kernel = config_flag(config, SETTING_kernel);

	if (user && kernel)
		return sampling_options_refuse(command, "-U and -K exclude each other");
	collect->user = !kernel;
	collect->kernel = !user;
	collect->filter.stacks = user     ? ABI_STACKS_USER
				 : kernel ? ABI_STACKS_KERNEL
					  : ABI_STACKS_BOTH;
	return 0;
}

static int take_rate(
	const struct config *config, const char *command, struct collect_options *collect)
{
	collect->event = COLLECT_CPU_CLOCK;
	collect->frequency_hz = config_number(config, SETTING_frequency);
	if (collect->frequency_hz < 1 || collect->frequency_hz > SAMPLER_MAX_HZ)
		return sampling_options_refuse(command, "-F must be 1 to 10000 samples a second");
	return 0;
}

const char *sampling_options_problem(const struct config *config, enum setting *ret_setting)
{
	uint32_t without;

	*ret_setting = SETTING_test_without;
	if (mechanisms_parse(config_text(config, SETTING_test_without), &without))
		return "accepts " MECHANISMS_NAMES;
	*ret_setting = SETTING_memory_limit;
	if (config_number(config, SETTING_memory_limit) < MIN_MEMORY_BYTES)
		return "must be 1M or more";
	return NULL;
}

uint32_t sampling_options_without(const struct config *config)
{
	uint32_t without = 0;

	(void)mechanisms_parse(config_text(config, SETTING_test_without), &without);
	return without;
}

static int check_settings(
	const struct config *config, const char *command, struct sampling_options *o)
{
	enum setting setting;
	const char *problem = sampling_options_problem(config, &setting);

	if (problem) {
		fprintf(stderr, "fathom %s: %s %s\n", command, config_name(setting), problem);
		return -EINVAL;
	}
	o->collect.without = sampling_options_without(config);
	return 0;
}

static int take_names(
	const struct config *config, const char *command, struct abi_sampler_config *filter)
{
	const char *comm = config_text(config, SETTING_comm);

	if (comm && !*comm)
		return sampling_options_refuse(command, "--comm needs a thread name");
	if (comm) {
		filter->filter_comm = 1;
		strncpy(filter->comm, comm, sizeof(filter->comm) - 1);
	}
	filter->fiber_id = config_number(config, SETTING_goid);
	if (config_given(config, SETTING_goid) && !filter->fiber_id)
		return sampling_options_refuse(
			command, "--goid must be a goroutine ID of 1 or more");
	return 0;
}

int sampling_options(
	const struct config *config, const char *command, struct sampling_options *ret_options)
{
	struct sampling_options o = { 0 };
	int err;

	if (config_flag(config, SETTING_stacks) && !config_flag(config, SETTING_quiet))
		fprintf(stderr, "fathom %s: -g is not needed: stacks are always taken\n", command);
	err = take_rate(config, command, &o.collect);
	if (!err)
		err = take_tasks(config, command, &o);
	if (!err)
		err = take_cpus(config, &o);
	if (!err)
		err = take_cgroup(config, command, &o.collect.filter);
	if (!err)
		err = capture_stacks(config, command, &o.collect);
	if (!err)
		err = take_names(config, command, &o.collect.filter);
	if (!err)
		err = check_settings(config, command, &o);
	if (err) {
		sampling_options_deinit(&o);
		return err;
	}
	sampling_options_common(&o.collect.filter);
	*ret_options = o;
	return 0;
}

int sampling_options_processes(
	const struct config *config, const char *command, struct sampling_options *ret_options)
{
	struct sampling_options o = { 0 };
	int err = take_tasks(config, command, &o);

	if (!err)
		err = check_settings(config, command, &o);
	if (err) {
		sampling_options_deinit(&o);
		return err;
	}
	sampling_options_common(&o.collect.filter);
	*ret_options = o;
	return 0;
}

void sampling_options_deinit(struct sampling_options *o)
{
	free(o->tgids);
	free(o->tids);
	free(o->cpu_numbers);
	free(o->cpus);
	*o = (struct sampling_options){ 0 };
}
