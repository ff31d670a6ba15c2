/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the probes on functions to processes, indexes and runtimes. Nothing is decided here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/sampler/files/file_identity.h"
#include "agent/sampler/sampler_internal.h"
#include "agent/sampler/seam/runtime_functions.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/own_code.h"

/* ---- which processes ------------------------------------------------------------------------ */

bool sampler_latency_selects(const struct sampler *sampler, const struct process *p)
{
	return !sampler->measured_pids.is_filter ||
	       measured_pids_have(&sampler->measured_pids, p->pid);
}

static bool on_selects(void *context, const struct process *p)
{
	return sampler_latency_selects(context, p);
}

static void tell_pids(struct sampler *sampler, bool changed)
{
	const struct measured_pids *pids = &sampler->measured_pids;
	int err;

	if (!changed || !sampler->latency)
		return;
	err = collect_set_tgids(sampler->collect, pids->items, pids->count);
	if (err)
		log_warn("a process cannot be added to those whose functions are measured",
			"error=\"%s\"", strerror(-err));
}

void sampler_latency_follow(struct sampler *sampler, uint32_t pid, bool follow)
{
	struct measured_pids *pids = &sampler->measured_pids;

	if (!sampler->probed_files || !pids->is_filter)
		return;
	tell_pids(sampler, follow ? measured_pids_add(pids, pid) : measured_pids_remove(pids, pid));
}

void sampler_latency_process_ends(struct sampler *sampler, uint32_t pid)
{
	struct measured_pids *pids = &sampler->measured_pids;

	if (!sampler->kernel_latency)
		sampler_latency_follow(sampler, pid, false);
	else
		tell_pids(sampler, measured_pids_end(pids, pid));
}

void sampler_latency_process_begins(struct sampler *sampler, uint32_t pid)
{
	tell_pids(sampler, measured_pids_begin(&sampler->measured_pids, pid));
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct module_opener latency_opener(const struct sampler *sampler)
{
	return (struct module_opener){ .proc_fd = sampler->proc_fd,
		.build_ids = &sampler->build_ids.reader };
}

int sampler_open_probed(
	void *context, const struct process *p, const struct mapping *mapping, int *ret_fd)
{
	const struct module_opener opener = latency_opener(context);

	return module_open(&opener, p->pid, mapping, NULL, ret_fd);
}

int sampler_want_functions(void *context, const struct process *p, const struct mapping *mapping)
{
	const struct sampler *sampler = context;

	return module_indexes_want_functions(sampler->module_indexes, p, mapping);
}

/*
 * Whether NOW is the file that MODULE was made for. A module whose file did not answer when it was
 * mapped has only the numbers of the mapping.
 */
static bool is_file_of(const struct module *module, const struct file_id *now)
{
	const struct file_id *file = &module->id.file;
	static const struct file_hash unread;

	if (!file_hash_equal(&module->id.content, &unread))
		return file_id_equal(now, file);
	return now->device == file->device && now->inode == file->inode;
}

int sampler_check_probed(void *context, const struct module *module, int fd)
{
	struct file_id now;
	int err = foreign_state(fd, &now);

	(void)context;
	if (err)
		return failure_is_transient(err) ? err : -ESTALE;
	return is_file_of(module, &now) ? 0 : -ESTALE;
}

bool sampler_fibers_of(
	void *context, const struct index *index, struct abi_runtime_process *ret_how)
{
	const struct sampler *sampler = context;

	return runtimes_configure(&sampler->runtimes, index, ret_how);
}

void sampler_latency_mapped(
	struct sampler *sampler, struct process *p, const struct mapping *mapping)
{
	bool held = p->pid == sampler->intake.options.follow_pid && !p->replaced;

	/*
	 * Until its exec the command is a fork of this program, whose functions nobody named. Its
	 * libraries are those that the command is likely to map.
	 */
	if (held && mapping->module == p->executable)
		return;
	if (sampler->probed_files)
		probed_files_mapped(sampler->probed_files, p, mapping);
	if (sampler->latency_probes)
		latency_probes_mapped(sampler->latency_probes, p, mapping);
}

void sampler_latency_index(
	struct sampler *sampler, const struct module *module, const struct index *index)
{
	if (sampler->probed_files)
		probed_files_index(sampler->probed_files, module, index);
	if (sampler->latency_probes)
		latency_probes_index(sampler->latency_probes, module, index);
}

void sampler_latency_keep(const struct sampler *sampler)
{
	if (sampler->probed_files)
		probed_files_keep(sampler->probed_files, clock_monotonic_ns());
}

void sampler_latency_forget(struct sampler *sampler, const struct module *module)
{
	if (sampler->probed_files)
		probed_files_forget(sampler->probed_files, module);
	if (sampler->latency_probes)
		latency_probes_forget(sampler->latency_probes, module);
}

/* Who calls a function may never be sampled. */
static void latency_search_processes(struct sampler *sampler)
{
	bool of_any = sampler->probed_files && !sampler->measured_pids.is_filter;

	if (of_any || latency_probes_exist(sampler->latency_probes))
		processes_search(sampler->processes, clock_monotonic_ns());
}

void sampler_latency_upkeep(struct sampler *sampler)
{
	latency_search_processes(sampler);
	tell_pids(sampler, measured_pids_tick(&sampler->measured_pids));
	if (sampler->latency)
		latency_tick(sampler->latency, clock_monotonic_ns());
	sampler_trace_upkeep(sampler);
	if (sampler->probed_files)
		probed_files_check(sampler->probed_files);
	sampler_probes_upkeep(sampler);
}

int sampler_latency_add_path(struct sampler *sampler, const char *path, bool program)
{
	autoclose int fd = -1, ours = -1;
	struct module_id id;
	struct module *module;
	int err = foreign_open(
		&(struct foreign_path){ .place = FOREIGN_HERE, .dir_fd = AT_FDCWD, .path = path },
		&fd);

	if (!err)
		err = module_identify(&sampler->build_ids.reader, fd, &id);
	if (!err)
		err = modules_get(sampler->modules, MODULE_FILE, &id, path, &module);
	if (err)
		return err;
	ours = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ours < 0)
		return -errno;
	err = probed_files_add(sampler->probed_files, module, take_fd(&ours), program);
	return err ? err
		   : module_indexes_want_functions_of(
			     sampler->module_indexes, module, take_fd(&fd));
}

/* ---- life ----------------------------------------------------------------------------------- */

static int latency_probe_create(
	struct sampler *sampler, const struct sampler_options *options, const char **ret_step)
{
	struct bpf_object *object = collect_probe_object(sampler->collect,
		options->trace ? trace_probe_name()
			       : latency_probe_name(options->collect.call_stacks));

	if (options->latency->dry_run)
		return 0;
	*ret_step = "load the probes";
	return object ? latency_create(
				object, &options->latency->probe, &sampler->latency, ret_step)
		      : -EOPNOTSUPP;
}

/*
 * What is measured may be this program, or a library that it has as well. Each of its own calls
 * would then be hit: a report would take minutes, and Ctrl-C be seen after it.
 */
static void latency_leave_probed_code(
	const struct sampler *sampler, const struct sampler_latency_options *latency)
{
	size_t bytes;

	if (!sampler->latency || !latency->wanted.count ||
		latency_is_of_one_process(sampler->latency))
		return;
	own_code_copy(&bytes);
	log_info("fathom executes a copy of its code, without breakpoints", "bytes=%zu", bytes);
}

int sampler_latency_create(
	struct sampler *sampler, const struct sampler_options *options, const char **ret_step)
{
	const struct sampler_latency_options *latency = options->latency;
	const struct collect_options *collect = &options->collect;
	struct measured_pids *pids = &sampler->measured_pids;
	int err;

	if (!latency)
		return 0;
	pids->is_filter = collect->filter.filter_tgids;
	for (size_t i = 0; pids->is_filter && i < collect->tgid_count; i++)
		(void)measured_pids_add(pids, collect->tgids[i]);
	err = latency_probe_create(sampler, options, ret_step);
	if (!err)
		err = sampler_kernel_latency_create(sampler, options, ret_step);
	if (err)
		return err;
	latency_leave_probed_code(sampler, latency);
	*ret_step = "allocate memory";
	return probed_files_create(
		&(struct probed_files_options){
			.wanted = &latency->wanted,
			.unwanted = &latency->unwanted,
			.roots = latency->roots,
			.exclude_vendor = latency->exclude_vendor,
			.dry_run = latency->dry_run,
			.max_functions = latency->max_functions,
			.latency = sampler->latency,
			.selects = on_selects,
			.open = sampler_open_probed,
			.want = sampler_want_functions,
			.check_file = sampler_check_probed,
			.chosen = sampler->trace.chosen ? sampler_trace_chosen : NULL,
			.fibers = sampler_fibers_of,
			.ends_fiber = options->trace ? runtime_function_ends_fiber : NULL,
			.context = sampler,
		},
		&sampler->probed_files);
}

void sampler_latency_destroy(struct sampler *sampler)
{
	probed_files_destroy(take(sampler->probed_files));
	sampler_kernel_latency_destroy(sampler);
	latency_destroy(take(sampler->latency));
}

const struct probed_files *sampler_probed_files(const struct sampler *sampler)
{
	return sampler->probed_files;
}

const struct latency *sampler_latency(const struct sampler *sampler)
{
	return sampler->latency;
}

uint64_t sampler_latency_stacks(const struct sampler *sampler)
{
	return aggregator_calls(&sampler->aggregator);
}

void sampler_latency_comm(struct sampler *sampler, uint32_t pid, char *comm, size_t size)
{
	const struct process *p = processes_of_pid(sampler->processes, pid);

	snprintf(comm, size, "%s", p ? p->comm : "");
}

void sampler_latency_detach(struct sampler *sampler)
{
	if (sampler->latency)
		latency_end(sampler->latency);
	probed_files_detach(sampler->probed_files);
	if (sampler->kernel_functions)
		kernel_functions_detach(sampler->kernel_functions);
	if (sampler->latency)
		latency_sweep_all(sampler->latency);
}
