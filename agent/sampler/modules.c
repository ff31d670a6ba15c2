/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hangs from modules and processes: indexes, runtimes. A module is
 * asked for at its first hit, while the process that maps it most likely still lives; its file is
 * opened then, so that it may be deleted or replaced afterwards.
 */
#include "agent/sampler/sampler_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/recording/notes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/host.h"
#include "base/log.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/vdso.h"

/* Between two times that a file is offered to the composition. */
static const uint64_t OFFER_NS = UINT64_C(60000000000);
/*
 * A build that could not be started, or took too long on a busy machine, may do better later. So
 * may what we had no means to ask for, but sooner at first.
 */
static const uint64_t FIRST_RETRY_NS = UINT64_C(1000000000);
static const uint64_t RETRY_NS = UINT64_C(60000000000);
static const uint64_t RETRY_DEBUG_NS = 10 * UINT64_C(60000000000);
/*
 * A file that only its own short-lived processes see is got from the one that lives when we look.
 * Their stacks are all the same, so those that were resolved already are looked through, too.
 */
static const uint64_t UNOPENED_NS = UINT64_C(10000000000);

struct sampler_process *sampler_process_data(struct process *p)
{
	struct sampler_process *data = p->owner_data;

	if (data)
		return data;
	data = calloc(1, sizeof(*data));
	if (!data)
		return NULL;
	data->jit.fd = -1;
	p->owner_data = data;
	return data;
}

void sampler_process_data_free(struct process *p)
{
	struct sampler_process *data = p->owner_data;

	if (!data)
		return;
	sampler_jit_deinit(&data->jit);
	free(data);
	p->owner_data = NULL;
}

struct sampler_module *sampler_module_data(struct module *m)
{
	if (!m->owner_data)
		m->owner_data = calloc(1, sizeof(struct sampler_module));
	return m->owner_data;
}

void sampler_module_data_free(struct module *m)
{
	struct sampler_module *data = m->owner_data;

	if (!data)
		return;
	index_destroy(data->index);
	free(data);
	m->owner_data = NULL;
}

/* ---- runtimes ------------------------------------------------------------------------------- */

/* The index of P's program may have come. */
static void runtime_of_program(struct sampler *sampler, const struct process *p)
{
	const struct sampler_module *module = p->executable ? p->executable->owner_data : NULL;

	if (!module || !module->index || p->ended)
		return;
	runtimes_program(&sampler->runtimes, &(struct runtime_program){
						     .pid = p->pid,
						     .generation = p->number,
						     .exec_id = p->exec_known ? &p->exec_id : NULL,
						     .index = module->index,
					     });
}

void sampler_process_ended(struct sampler *sampler, struct process *p)
{
	runtimes_ended(&sampler->runtimes, p->number);
	if (sampler->unwind)
		unwind_forget(sampler->unwind, p);
	sampler_jit_ended(p);
}

/* ---- indexes -------------------------------------------------------------------------------- */

static bool has_lines(const struct index *index)
{
	return index_sources(index) & (INDEX_SOURCE_DWARF | INDEX_SOURCE_PCLNTAB);
}

/* When to ask once more. Of an index without lines: servers or files that are there by then. */
static uint64_t retry_at(const struct sampler *sampler, const struct index *index)
{
	if (!index)
		return sampler->newest_sample_ns + RETRY_NS;
	return sampler->debuginfod && !has_lines(index) ? sampler->newest_sample_ns + RETRY_DEBUG_NS
							: 0;
}

/* Its debug file came. Addresses are the file's, as before, and so are the unwind tables. */
static void replace_index(struct sampler *sampler, struct module *m, struct index *index)
{
	struct sampler_module *data = m->owner_data;

	if (!index || has_lines(data->index) || !has_lines(index)) {
		index_destroy(index);
		return;
	}
	if (sampler->unwind)
		unwind_replace_index(sampler->unwind, m, index);
	index_destroy(data->index);
	data->index = index;
	log_debug("a module's debug file came", "path=\"%s\"", m->path ? m->path : "");
}

void sampler_look_at_debuginfod(struct sampler *sampler)
{
	struct debuginfod_state state;

	if (!sampler->debuginfod)
		return;
	state = debuginfod_state(sampler->debuginfod);
	if (state.failures && !sampler->debuginfod_failing)
		log_warn("debuginfod does not answer, asking again later",
			"error=\"%s\" http_status=%u", debuginfod_explain(state.last.error),
			state.last.http_status);
	else if (!state.failures && sampler->debuginfod_failing)
		log_info("debuginfod answers again", "%s", "");
	sampler->debuginfod_failing = state.failures > 0;
	if (state.wrong && !sampler->debuginfod_wrong)
		log_warn("debuginfod sent files that are not what was asked for, or cannot be "
			 "read, ignoring them",
			"%s", "");
	sampler->debuginfod_wrong = state.wrong > 0;
}

void sampler_look_at_builds(struct sampler *sampler)
{
	struct builds_setbacks now = builds_setbacks(sampler->builds), said = sampler->setbacks;

	if (now.interrupted > said.interrupted)
		log_warn("index builders were killed, or memory was short: building again later",
			"builds=%llu", (unsigned long long)(now.interrupted - said.interrupted));
	if (now.not_started > said.not_started)
		log_warn("index builds cannot be started, trying again later",
			"builds=%llu error=\"%s\"",
			(unsigned long long)(now.not_started - said.not_started),
			strerror(-now.start_error));
	sampler->setbacks = now;
}

void sampler_index_done(void *context, uint64_t tag, struct index *index)
{
	struct sampler *sampler = context;
	struct module *m = modules_find(sampler->modules, (uint32_t)tag);
	struct sampler_module *data = m ? sampler_module_data(m) : NULL;
	struct process *p;
	size_t iterator = 0;

	host_note(HOST_NOTE_INDEX, &(struct note_index){ .tag = tag, .index = index });
	if (!data) {
		index_destroy(index);
		return;
	}
	data->retry_ns = retry_at(sampler, index);
	if (data->index) {
		replace_index(sampler, m, index);
		return;
	}
	data->index = index;
	sampler->module_came = true;
	if (index && runtimes_has(&sampler->runtimes, index)) {
		while ((p = processes_next(sampler->processes, &iterator)) != NULL) {
			if (p->executable == m)
				runtime_of_program(sampler, p);
		}
	}
}

/*
 * We had no means to ask for M's index: no descriptors, no memory, no place in the queue. Whoever
 * maps it is asked again soon, by stacks that were resolved already, too: a program that is all of
 * one loop has no others.
 */
static void set_back(struct sampler *sampler, struct module *m, int err)
{
	struct sampler_module *data = m->owner_data;
	uint64_t pause_ns = failure_pause_ns(++data->setbacks, FIRST_RETRY_NS, RETRY_NS);

	m->requested = false;
	data->rest_until_ns = sampler->newest_sample_ns + pause_ns;
	sampler->unopened_until_ns =
		MAX(sampler->unopened_until_ns, data->rest_until_ns + UNOPENED_NS);
	if (log_rate_allows(&sampler->setback_log))
		log_warn("names of a program or library cannot be asked for now, trying again",
			"error=\"%s\"", strerror(-err));
}

/* FD is taken, whatever comes of it. P is NULL for what is no file. */
static int request(struct sampler *sampler, const struct module *m, const struct module_id *id,
	const struct process *p, int fd_)
{
	autoclose int root_fd = -1, fd = fd_;
	struct debug_search search = { .directories = sampler->debug_directories };
	char root[32];
	int err;

	if (p) {
		snprintf(root, sizeof(root), "%u/root", p->pid);
		root_fd = host_openat(sampler->proc_fd, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		/* Without it our own debug files would do for a container's. */
		if (root_fd < 0 && failure_is_shortage(-errno))
			return -errno;
	}
	search.root_fd = root_fd;
	search.path = m->path ? m->path : "";
	host_note(HOST_NOTE_REQUEST, &(struct note_request){ .tag = m->number, .id = id });
	err = builds_request_debug(sampler->builds, id, take_fd(&fd), m->number, &search);
	if (err)
		host_note(HOST_NOTE_REQUEST,
			&(struct note_request){ .tag = m->number, .id = id, .error = err });
	return err;
}

static int request_vdso(struct sampler *sampler, const struct module *m)
{
	struct module_id id;
	int fd, err = vdso_open(&fd, &id);

	host_note(HOST_NOTE_VDSO, &(struct note_vdso){ .error = err, .id = err ? NULL : &id });
	return err ? err : request(sampler, m, &id, NULL, fd);
}

/*
 * What an index of M is asked for by: the identity of its file, which is FD, or was seen elsewhere
 * (-1). -ENOENT: it never was, and what it says of itself is not enough.
 */
static int identify(
	const struct sampler *sampler, const struct module *m, int fd, struct module_id *ret_id)
{
	if (!file_hash_is_none(&m->id.content)) {
		*ret_id = m->id;
		return 0;
	}
	if (fd >= 0)
		return module_identify(fd, ret_id);
	return processes_identify(sampler->processes, &m->id, ret_id) ? 0 : -ENOENT;
}

static int open_mapped(struct sampler *sampler, const struct process *p,
	const struct mapping *mapping, int *ret_fd)
{
	int err = module_open(
		sampler->proc_fd, p->pid, mapping->start, mapping->end, mapping->module, ret_fd);

	if (err)
		metrics_add(&sampler->metrics, METRIC_MODULE_OPEN_FAILED, 1);
	return err;
}

static bool is_retry_due(const struct sampler *sampler, const struct module *m)
{
	const struct sampler_module *data = m->owner_data;

	return data && data->retry_ns && sampler->newest_sample_ns >= data->retry_ns;
}

static bool is_resting(const struct sampler *sampler, const struct sampler_module *data)
{
	return sampler->newest_sample_ns < data->rest_until_ns;
}

static void open_failed(struct sampler *sampler, const struct process *p, struct module *m)
{
	struct sampler_module *data = m->owner_data;

	if (data->index) {
		m->requested = true;
		data->retry_ns = retry_at(sampler, data->index);
		return;
	}
	m->requested = false;
	data->failed_process = p->number;
	sampler->unopened_until_ns = sampler->newest_sample_ns + UNOPENED_NS;
}

/* While the process most likely lives: its file may be deleted, or nobody else's to see. */
static void offer_file(
	struct sampler *sampler, const struct process *p, const struct mapping *mapping)
{
	struct sampler_module *data = sampler_module_data(mapping->module);
	uint64_t now_ns = sampler->newest_sample_ns;
	int fd = -1;

	if (!data || (data->offered_ns > sampler->offered_anew_ns &&
			     now_ns < data->offered_ns + OFFER_NS))
		return;
	data->offered_ns = now_ns;
	if (!sampler->wants_file(sampler->sealed_context, mapping->module))
		return;
	if (!open_mapped(sampler, p, mapping, &fd))
		sampler->take_file(sampler->sealed_context, mapping->module, fd);
}

void sampler_offer_files_again(struct sampler *sampler)
{
	sampler->offered_anew_ns = sampler->newest_sample_ns;
}

/* Asks for the index of the file behind MAPPING. */
static void request_mapped(
	struct sampler *sampler, const struct process *p, const struct mapping *mapping)
{
	struct module *m = mapping->module;
	struct sampler_module *data = m->owner_data;
	autoclose int fd = -1;
	struct module_id id;
	int open_err = open_mapped(sampler, p, mapping, &fd);
	/* What is known of the file may be in the cache, if it cannot be opened. */
	int err = identify(sampler, m, fd, &id);

	if (!err)
		err = request(sampler, m, &id, p, take_fd(&fd));
	m->requested = !err;
	if (open_err && !data->index)
		err = open_err;
	if (failure_is_transient(err))
		set_back(sampler, m, err);
	else if (err)
		open_failed(sampler, p, m); /* the next process that maps the file may give it */
	else
		data->setbacks = 0;
}

void sampler_module_hit(struct sampler *sampler, struct process *p, const struct mapping *mapping)
{
	struct module *m = mapping->module;
	struct sampler_module *data;
	int err;

	m->used_ns = sampler->newest_sample_ns;
	if (m->kind != MODULE_FILE && m->kind != MODULE_VDSO)
		return;
	if (sampler->wants_file && m->kind == MODULE_FILE)
		offer_file(sampler, p, mapping);
	if (m->requested && !is_retry_due(sampler, m))
		return;
	data = sampler_module_data(m);
	if (!data || is_resting(sampler, data) ||
		(data->failed_process == p->number && !is_retry_due(sampler, m)))
		return;
	m->requested = true;
	data->retry_ns = 0;
	if (m->kind != MODULE_VDSO) {
		request_mapped(sampler, p, mapping);
		return;
	}
	err = request_vdso(sampler, m);
	if (failure_is_transient(err))
		set_back(sampler, m, err);
}

void sampler_identify_modules(struct sampler *sampler)
{
	struct module *m;
	size_t i = 0;

	while ((m = modules_next(sampler->modules, &i))) {
		const struct sampler_module *data = m->owner_data;
		struct module_id id;

		if (m->kind == MODULE_FILE && file_hash_is_none(&m->id.content) && m->used_ns &&
			!m->requested && data && !data->index && !identify(sampler, m, -1, &id))
			m->requested = !request(sampler, m, &id, NULL, -1);
	}
}

static const struct mapping *mapping_of(const struct process *p, const struct module *m)
{
	for (size_t i = 0; i < mappings_count(p->mappings); i++) {
		const struct mapping *mapping = mappings_at(p->mappings, i);

		if (mapping->module == m)
			return mapping;
	}
	return NULL;
}

void sampler_stack_hit(
	struct sampler *sampler, struct process *p, const struct profile_stack *stack)
{
	if (sampler->newest_sample_ns >= sampler->unopened_until_ns)
		return;
	for (uint32_t i = stack->kernel_count; i < stack->frame_count; i++) {
		const struct module *m = modules_find(sampler->modules, stack->frames[i].module);
		const struct mapping *mapping = m && !m->requested ? mapping_of(p, m) : NULL;

		if (mapping)
			sampler_module_hit(sampler, p, mapping);
	}
}

void sampler_request_program(struct sampler *sampler, struct process *p)
{
	const struct mapping *mapping = p->executable ? mapping_of(p, p->executable) : NULL;

	if (mapping)
		sampler_module_hit(sampler, p, mapping);
	runtime_of_program(sampler, p);
}

/*
 * A program that was seen before has its index in the cache: its runtime can be read at once.
 * One that was not is built at its first sample.
 */
void sampler_program_known(struct sampler *sampler, struct process *p)
{
	struct module *m = p->executable;
	struct sampler_module *data = sampler_module_data(m);
	struct module_id id;
	struct index *index;
	int err;

	if (!data || m->kind != MODULE_FILE)
		return;
	m->used_ns = clock_monotonic_ns();
	if (!m->requested && !data->not_cached && !identify(sampler, m, -1, &id)) {
		err = cache_open(sampler->cache, &id, &index);
		host_note(HOST_NOTE_CACHED,
			&(struct note_index){
				.id = &id, .error = err, .index = err ? NULL : index });
		data->not_cached = err && !failure_is_transient(err);
		/* What debug files may add is looked for at the first hit. */
		if (!err && (index_lacks_debug(index) || index_lacks_shared(index) ||
				    index_lacks_split(index))) {
			index_destroy(index);
			data->not_cached = true;
		}
		if (!err && !data->not_cached) {
			m->requested = true;
			data->index = index;
			sampler->module_came = true;
			metrics_add(&sampler->metrics, METRIC_INDEX_CACHE_HITS, 1);
		}
	}
	runtime_of_program(sampler, p);
}

void sampler_forget_index_pages(struct sampler *sampler)
{
	const struct module *module;
	size_t i = 0;

	while ((module = modules_next(sampler->modules, &i))) {
		const struct sampler_module *data = module->owner_data;

		if (data && data->index)
			index_forget_pages(data->index);
	}
}

const struct index *sampler_index_of(void *context, const struct module *m)
{
	const struct sampler_module *data = m->owner_data;
	struct sampler *sampler = context;

	memory_guard_count_lookup(&sampler->memory_guard);
	return data ? data->index : NULL;
}
