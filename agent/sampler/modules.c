/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hangs from modules and processes: indexes, goroutine-id settings. A module is
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

#include "agent/sampler/runtimes/go/goids.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/log.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/vdso.h"

enum {
	LOOK_UPS_BETWEEN_CHECKS = 16,
	RESIDENT_INDEX_LIMIT = 2 << 20, /* what look-ups may add to the resident file pages */
};

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

struct agent_process *agent_process_data(struct process *p)
{
	struct agent_process *data = p->owner_data;

	if (data)
		return data;
	data = calloc(1, sizeof(*data));
	if (!data)
		return NULL;
	data->jit.fd = -1;
	p->owner_data = data;
	return data;
}

void agent_process_data_free(struct process *p)
{
	struct agent_process *data = p->owner_data;

	if (!data)
		return;
	agent_jit_deinit(&data->jit);
	free(data);
	p->owner_data = NULL;
}

struct agent_module *agent_module_data(struct module *m)
{
	if (!m->owner_data)
		m->owner_data = calloc(1, sizeof(struct agent_module));
	return m->owner_data;
}

void agent_module_data_free(struct module *m)
{
	struct agent_module *data = m->owner_data;

	if (!data)
		return;
	index_destroy(data->index);
	free(data);
	m->owner_data = NULL;
}

/* ---- goroutine ids -------------------------------------------------------------------------- */

static void configure_goids(struct agent *agent, struct process *p)
{
	struct agent_module *module = p->executable ? p->executable->owner_data : NULL;
	const struct index_go *go = module && module->index ? index_go(module->index) : NULL;
	struct agent_process *data;
	struct abi_go_process how;
	int err;

	if (!go || p->ended)
		return;
	data = agent_process_data(p);
	if (!data || (data->go_configured && (data->go_bound || !p->exec_known)))
		return;
	if (!goids_how(go, p->number, p->exec_known ? &p->exec_id : NULL, &how)) {
		data->go_configured = data->go_bound = true;
		metrics_add(&agent->metrics, METRIC_GO_UNKNOWN_VERSION, 1);
		log_info("goroutine ids of this Go program cannot be read", "pid=%u go=1.%u",
			p->pid, go->version);
		return;
	}
	err = collect_set_go_process(agent->collect, p->pid, &how);
	data->go_configured |= !err;
	data->go_bound = !err && p->exec_known;
	agent->goids_refused |= err != 0;
	if (err && !data->go_refused) {
		data->go_refused = true;
		metrics_add(&agent->metrics, METRIC_GO_REFUSED, 1);
		log_debug("goroutine ids cannot be configured, trying again", "pid=%u error=%d",
			p->pid, err);
	}
}

void agent_bind_goids(struct agent *agent, struct process *p)
{
	const struct agent_process *data = p->owner_data;

	if (data && data->go_configured && !data->go_bound && p->exec_known)
		configure_goids(agent, p);
}

void agent_configure_refused_goids(struct agent *agent)
{
	struct process *p;
	size_t iterator = 0;

	if (!agent->goids_refused)
		return;
	agent->goids_refused = false;
	while ((p = processes_next(agent->processes, &iterator)) != NULL) {
		const struct agent_process *data = p->owner_data;

		if (data && data->go_refused)
			configure_goids(agent, p);
	}
}

void agent_process_ended(struct agent *agent, struct process *p)
{
	struct agent_process *data = p->owner_data;

	if (data && data->go_configured && agent->collect)
		collect_remove_go_process(agent->collect, p->pid);
	if (agent->unwind)
		unwind_forget(agent->unwind, p);
	agent_jit_ended(p);
}

/* ---- indexes -------------------------------------------------------------------------------- */

static bool has_lines(const struct index *index)
{
	return index_sources(index) & (INDEX_SOURCE_DWARF | INDEX_SOURCE_PCLNTAB);
}

/* When to ask once more. Of an index without lines: servers or files that are there by then. */
static uint64_t retry_at(const struct agent *agent, const struct index *index)
{
	if (!index)
		return agent->newest_sample_ns + RETRY_NS;
	return agent->debuginfod && !has_lines(index) ? agent->newest_sample_ns + RETRY_DEBUG_NS
						      : 0;
}

/* Its debug file came. Addresses are the file's, as before, and so are the unwind tables. */
static void replace_index(struct agent *agent, struct module *m, struct index *index)
{
	struct agent_module *data = m->owner_data;

	if (!index || has_lines(data->index) || !has_lines(index)) {
		index_destroy(index);
		return;
	}
	if (agent->unwind)
		unwind_replace_index(agent->unwind, m, index);
	index_destroy(data->index);
	data->index = index;
	log_debug("a module's debug file came", "path=\"%s\"", m->path ? m->path : "");
}

void agent_look_at_debuginfod(struct agent *agent)
{
	struct debuginfod_state state;

	if (!agent->debuginfod)
		return;
	state = debuginfod_state(agent->debuginfod);
	if (state.failures && !agent->debuginfod_failing)
		log_warn("debuginfod does not answer, asking again later",
			"error=\"%s\" http_status=%u", debuginfod_explain(state.last.error),
			state.last.http_status);
	else if (!state.failures && agent->debuginfod_failing)
		log_info("debuginfod answers again", "%s", "");
	agent->debuginfod_failing = state.failures > 0;
	if (state.wrong && !agent->debuginfod_wrong)
		log_warn("debuginfod sent files that are not what was asked for, or cannot be "
			 "read, ignoring them",
			"%s", "");
	agent->debuginfod_wrong = state.wrong > 0;
}

void agent_look_at_builds(struct agent *agent)
{
	struct builds_setbacks now = builds_setbacks(agent->builds), said = agent->setbacks;

	if (now.interrupted > said.interrupted)
		log_warn("index builders were killed, or memory was short: building again later",
			"builds=%llu", (unsigned long long)(now.interrupted - said.interrupted));
	if (now.not_started > said.not_started)
		log_warn("index builds cannot be started, trying again later",
			"builds=%llu error=\"%s\"",
			(unsigned long long)(now.not_started - said.not_started),
			strerror(-now.start_error));
	agent->setbacks = now;
}

void agent_index_done(void *context, uint64_t tag, struct index *index)
{
	struct agent *agent = context;
	struct module *m = modules_find(agent->modules, (uint32_t)tag);
	struct agent_module *data = m ? agent_module_data(m) : NULL;
	struct process *p;
	size_t iterator = 0;

	if (!data) {
		index_destroy(index);
		return;
	}
	data->retry_ns = retry_at(agent, index);
	if (data->index) {
		replace_index(agent, m, index);
		return;
	}
	data->index = index;
	agent->module_came = true;
	if (index && index_go(index)) {
		while ((p = processes_next(agent->processes, &iterator)) != NULL) {
			if (p->executable == m)
				configure_goids(agent, p);
		}
	}
}

/*
 * We had no means to ask for M's index: no descriptors, no memory, no place in the queue. Whoever
 * maps it is asked again soon, by stacks that were resolved already, too: a program that is all of
 * one loop has no others.
 */
static void set_back(struct agent *agent, struct module *m, int err)
{
	struct agent_module *data = m->owner_data;
	uint64_t pause_ns = failure_pause_ns(++data->setbacks, FIRST_RETRY_NS, RETRY_NS);

	m->requested = false;
	data->rest_until_ns = agent->newest_sample_ns + pause_ns;
	agent->unopened_until_ns = MAX(agent->unopened_until_ns, data->rest_until_ns + UNOPENED_NS);
	if (log_rate_allows(&agent->setback_log))
		log_warn("names of a program or library cannot be asked for now, trying again",
			"error=\"%s\"", strerror(-err));
}

/* FD is taken, whatever comes of it. P is NULL for what is no file. */
static int request(struct agent *agent, const struct module *m, const struct module_id *id,
	const struct process *p, int fd_)
{
	autoclose int root_fd = -1, fd = fd_;
	struct debug_search search = { .directories = agent->debug_directories };
	char root[32];

	if (p) {
		snprintf(root, sizeof(root), "%u/root", p->pid);
		root_fd = openat(agent->proc_fd, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		/* Without it our own debug files would do for a container's. */
		if (root_fd < 0 && failure_is_shortage(-errno))
			return -errno;
	}
	search.root_fd = root_fd;
	search.path = m->path ? m->path : "";
	return builds_request_debug(agent->builds, id, take_fd(&fd), m->number, &search);
}

static int request_vdso(struct agent *agent, const struct module *m)
{
	struct module_id id;
	int fd, err = vdso_open(&fd, &id);

	return err ? err : request(agent, m, &id, NULL, fd);
}

/*
 * What an index of M is asked for by: the identity of its file, which is FD, or was seen elsewhere
 * (-1). -ENOENT: it never was, and what it says of itself is not enough.
 */
static int identify(
	const struct agent *agent, const struct module *m, int fd, struct module_id *ret_id)
{
	if (!file_hash_is_none(&m->id.content)) {
		*ret_id = m->id;
		return 0;
	}
	if (fd >= 0)
		return module_identify(fd, ret_id);
	return processes_identify(agent->processes, &m->id, ret_id) ? 0 : -ENOENT;
}

static int open_mapped(
	struct agent *agent, const struct process *p, const struct mapping *mapping, int *ret_fd)
{
	int err = module_open(
		agent->proc_fd, p->pid, mapping->start, mapping->end, mapping->module, ret_fd);

	if (err)
		metrics_add(&agent->metrics, METRIC_MODULE_OPEN_FAILED, 1);
	return err;
}

static bool is_retry_due(const struct agent *agent, const struct module *m)
{
	const struct agent_module *data = m->owner_data;

	return data && data->retry_ns && agent->newest_sample_ns >= data->retry_ns;
}

static bool is_resting(const struct agent *agent, const struct agent_module *data)
{
	return agent->newest_sample_ns < data->rest_until_ns;
}

static void open_failed(struct agent *agent, const struct process *p, struct module *m)
{
	struct agent_module *data = m->owner_data;

	if (data->index) {
		m->requested = true;
		data->retry_ns = retry_at(agent, data->index);
		return;
	}
	m->requested = false;
	data->failed_process = p->number;
	agent->unopened_until_ns = agent->newest_sample_ns + UNOPENED_NS;
}

/* While the process most likely lives: its file may be deleted, or nobody else's to see. */
static void offer_file(struct agent *agent, const struct process *p, const struct mapping *mapping)
{
	struct agent_module *data = agent_module_data(mapping->module);
	uint64_t now_ns = agent->newest_sample_ns;
	int fd = -1;

	if (!data ||
		(data->offered_ns > agent->offered_anew_ns && now_ns < data->offered_ns + OFFER_NS))
		return;
	data->offered_ns = now_ns;
	if (!agent->wants_file(agent->sealed_context, mapping->module))
		return;
	if (!open_mapped(agent, p, mapping, &fd))
		agent->take_file(agent->sealed_context, mapping->module, fd);
}

void agent_offer_files_again(struct agent *agent)
{
	agent->offered_anew_ns = agent->newest_sample_ns;
}

/* Asks for the index of the file behind MAPPING. */
static void request_mapped(
	struct agent *agent, const struct process *p, const struct mapping *mapping)
{
	struct module *m = mapping->module;
	struct agent_module *data = m->owner_data;
	autoclose int fd = -1;
	struct module_id id;
	int open_err = open_mapped(agent, p, mapping, &fd);
	/* What is known of the file may be in the cache, if it cannot be opened. */
	int err = identify(agent, m, fd, &id);

	if (!err)
		err = request(agent, m, &id, p, take_fd(&fd));
	m->requested = !err;
	if (open_err && !data->index)
		err = open_err;
	if (failure_is_transient(err))
		set_back(agent, m, err);
	else if (err)
		open_failed(agent, p, m); /* the next process that maps the file may give it */
	else
		data->setbacks = 0;
}

void agent_module_hit(struct agent *agent, struct process *p, const struct mapping *mapping)
{
	struct module *m = mapping->module;
	struct agent_module *data;
	int err;

	m->used_ns = agent->newest_sample_ns;
	if (m->kind != MODULE_FILE && m->kind != MODULE_VDSO)
		return;
	if (agent->wants_file && m->kind == MODULE_FILE)
		offer_file(agent, p, mapping);
	if (m->requested && !is_retry_due(agent, m))
		return;
	data = agent_module_data(m);
	if (!data || is_resting(agent, data) ||
		(data->failed_process == p->number && !is_retry_due(agent, m)))
		return;
	m->requested = true;
	data->retry_ns = 0;
	if (m->kind != MODULE_VDSO) {
		request_mapped(agent, p, mapping);
		return;
	}
	err = request_vdso(agent, m);
	if (failure_is_transient(err))
		set_back(agent, m, err);
}

void agent_identify_modules(struct agent *agent)
{
	struct module *m;
	size_t i = 0;

	while ((m = modules_next(agent->modules, &i))) {
		const struct agent_module *data = m->owner_data;
		struct module_id id;

		if (m->kind == MODULE_FILE && file_hash_is_none(&m->id.content) && m->used_ns &&
			!m->requested && data && !data->index && !identify(agent, m, -1, &id))
			m->requested = !request(agent, m, &id, NULL, -1);
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

void agent_stack_hit(struct agent *agent, struct process *p, const struct profile_stack *stack)
{
	if (agent->newest_sample_ns >= agent->unopened_until_ns)
		return;
	for (uint32_t i = stack->kernel_count; i < stack->frame_count; i++) {
		const struct module *m = modules_find(agent->modules, stack->frames[i].module);
		const struct mapping *mapping = m && !m->requested ? mapping_of(p, m) : NULL;

		if (mapping)
			agent_module_hit(agent, p, mapping);
	}
}

void agent_request_program(struct agent *agent, struct process *p)
{
	const struct mapping *mapping = p->executable ? mapping_of(p, p->executable) : NULL;

	if (mapping)
		agent_module_hit(agent, p, mapping);
	configure_goids(agent, p);
}

/*
 * A program that was seen before has its index in the cache: its goroutine ids can be read at once.
 * One that was not is built at its first sample.
 */
void agent_program_known(struct agent *agent, struct process *p)
{
	struct module *m = p->executable;
	struct agent_module *data = agent_module_data(m);
	struct module_id id;
	struct index *index;
	int err;

	if (!data || m->kind != MODULE_FILE)
		return;
	m->used_ns = clock_monotonic_ns();
	if (!m->requested && !data->not_cached && !identify(agent, m, -1, &id)) {
		err = cache_open(agent->cache, &id, &index);
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
			agent->module_came = true;
			metrics_add(&agent->metrics, METRIC_INDEX_CACHE_HITS, 1);
		}
	}
	configure_goids(agent, p);
}

void agent_forget_index_pages(struct agent *agent)
{
	const struct module *module;
	size_t i = 0;

	while ((module = modules_next(agent->modules, &i))) {
		const struct agent_module *data = module->owner_data;

		if (data && data->index)
			index_forget_pages(data->index);
	}
	(void)agent_resident_bytes(agent, &agent->file_bytes);
}

/*
 * Each look-up touches a few pages of an index and the kernel maps their neighbours, too. They are
 * clean and quickly found again, so they are let go before they add up.
 */
void agent_keep_indexes_small(struct agent *agent)
{
	uint64_t file_bytes;

	if (++agent->look_ups % LOOK_UPS_BETWEEN_CHECKS)
		return;
	(void)agent_resident_bytes(agent, &file_bytes);
	if (file_bytes >= agent->file_bytes + RESIDENT_INDEX_LIMIT)
		agent_forget_index_pages(agent);
}

const struct index *agent_index_of(void *context, const struct module *m)
{
	const struct agent_module *data = m->owner_data;

	agent_keep_indexes_small(context);
	return data ? data->index : NULL;
}
