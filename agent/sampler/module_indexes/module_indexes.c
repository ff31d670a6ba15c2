/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/module_indexes/module_indexes_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/recording/notes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/host.h"
#include "symbolizer/index/functions.h"

/* Pause before a file is offered to the owner again. */
static const uint64_t OFFER_NS = UINT64_C(60000000000);
/* Pause after an index without lines: servers may have them by then. */
static const uint64_t NO_LINES_NS = UINT64_C(600000000000);
/* Pause after an index whose debug files did not answer. */
static const uint64_t LATE_NS = UINT64_C(15000000000);
/*
 * Pauses after a request failed for a transient reason. Asking costs little: files that do not
 * answer are not waited for by each request (agent/sampler/files/hangs.h).
 */
static const uint64_t FIRST_POSTPONED_NS = UINT64_C(1000000000);
static const uint64_t POSTPONED_LOG_NS = UINT64_C(60000000000);
static const uint64_t LONGEST_POSTPONED_NS = UINT64_C(15000000000);
/* Times in a row after which an answer is unlikely to come in time for a walk. */
enum { FEW_POSTPONED = 3 };
/*
 * A file that only short-lived processes can see must be opened while one of them is alive. Their
 * stacks are all alike, so for this long the frames of cached stacks are checked, too.
 */
static const uint64_t KNOWN_STACKS_NS = UINT64_C(10000000000);

/* ---- the table ------------------------------------------------------------------------------ */

static void module_index_destroy(struct module_index *m)
{
	index_destroy(m->index);
	free(m);
}

static struct module_index *module_indexes_find(
	const struct module_indexes *indexes, const struct module *module)
{
	return map_get_pointer(&indexes->by_number, module->number);
}

struct module_index *module_indexes_make(struct module_indexes *indexes, struct module *module)
{
	struct module_index *m = module_indexes_find(indexes, module);

	if (m) {
		assert(m->module == module);
		return m;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->module = module;
	if (map_set_pointer(&indexes->by_number, module->number, m)) {
		metrics_add(indexes->options.requests.metrics, METRIC_MODULES_REFUSED, 1);
		free(m);
		return NULL;
	}
	return m;
}

static struct module_index *module_indexes_next(
	const struct module_indexes *indexes, size_t *iterator)
{
	uint64_t number, pointer;

	return map_next(&indexes->by_number, iterator, &number, &pointer)
		       ? (struct module_index *)(uintptr_t)pointer
		       : NULL;
}

int module_indexes_create(
	const struct module_indexes_options *options, struct module_indexes **ret_indexes)
{
	struct module_indexes *indexes = calloc(1, sizeof(*indexes));

	assert(options->answered && options->replaced);
	assert(!options->wants_file == !options->take_file);
	if (!indexes)
		return -ENOMEM;
	indexes->options = *options;
	map_init(&indexes->by_number, options->limit);
	*ret_indexes = indexes;
	return 0;
}

void module_indexes_destroy(struct module_indexes *indexes)
{
	struct module_index *m;
	size_t iterator = 0;

	if (!indexes)
		return;
	while ((m = module_indexes_next(indexes, &iterator)))
		module_index_destroy(m);
	map_deinit(&indexes->by_number);
	free(indexes);
}

void module_indexes_forget(struct module_indexes *indexes, const struct module *module)
{
	struct module_index *m = module_indexes_find(indexes, module);

	if (!m)
		return;
	map_remove(&indexes->by_number, module->number);
	module_index_destroy(m);
}

void module_indexes_set_cgroup(struct module_indexes *indexes, uint64_t cgroup_id)
{
	indexes->options.requests.cgroup_id = cgroup_id;
}

void module_indexes_set_time(struct module_indexes *indexes, uint64_t sample_ns)
{
	indexes->now_ns = sample_ns;
}

/* ---- answers -------------------------------------------------------------------------------- */

static bool index_has_lines(const struct index *index)
{
	return index_sources(index) & (INDEX_SOURCE_DWARF | INDEX_SOURCE_PCLNTAB);
}

/* Whether no debug file can add to INDEX. Debug files are searched for at the first sample. */
static bool index_is_complete(const struct index *index)
{
	return !index_lacks_debug(index) && !index_lacks_shared(index) && !index_lacks_split(index);
}

/* LATE: builds_debug_is_late(). */
static uint64_t module_indexes_again_ns(
	const struct module_indexes *indexes, const struct index *index, bool late)
{
	if (late)
		return indexes->now_ns + LATE_NS;
	if (!index)
		return indexes->now_ns + MODULE_INDEX_ABSENT_NS;
	if (indexes->options.servers_asked && !index_has_lines(index))
		return indexes->now_ns + NO_LINES_NS;
	return 0;
}

/* A program that is a single loop has no other stacks than those that are known. */
static void module_index_expect_samples(
	struct module_indexes *indexes, const struct module_index *m)
{
	indexes->known_stacks_until_ns =
		MAX(indexes->known_stacks_until_ns, m->again_ns + KNOWN_STACKS_NS);
}

/*
 * Whether INDEX is to replace M's. One with functions is, even if it lacks lines that servers gave:
 * they are asked again.
 */
static bool module_index_is_better(const struct module_index *m, const struct index *index)
{
	if (index_has_functions(index) != index_has_functions(m->index))
		return index_has_functions(index);
	return (index_has_lines(index) && !index_has_lines(m->index)) ||
	       (index_is_complete(index) && !index_is_complete(m->index));
}

/* Addresses and unwind tables still are those of the module's file. */
static void module_index_replace(
	struct module_indexes *indexes, struct module_index *m, struct index *index)
{
	if (!index || !module_index_is_better(m, index)) {
		index_destroy(index);
		return;
	}
	indexes->options.replaced(indexes->options.context, m->module, index);
	index_destroy(m->index);
	m->index = index;
	log_debug("a better index of a module arrived", "path=\"%s\"",
		m->module->path ? m->module->path : "");
}

static void module_index_answer(
	struct module_indexes *indexes, struct module_index *m, struct index *index)
{
	m->state = MODULE_INDEX_ANSWERED;
	m->late = builds_debug_is_late(indexes->options.requests.builds);
	m->again_ns = module_indexes_again_ns(indexes, index, m->late);
	if (m->late)
		module_index_expect_samples(indexes, m);
	if (m->index) {
		module_index_replace(indexes, m, index);
	} else {
		m->index = index;
		m->absent = !index;
		indexes->options.answered(indexes->options.context, m->module, index);
	}
	module_index_tell_functions(indexes, m);
}

void module_indexes_answer(struct module_indexes *indexes, uint64_t tag, struct index *index)
{
	struct module_index *m = map_get_pointer(&indexes->by_number, tag);

	if (m)
		module_index_answer(indexes, m, index);
	else
		index_destroy(index); /* the module was forgotten meanwhile */
}

/* ---- questions ------------------------------------------------------------------------------ */

static void module_index_postpone(
	struct module_indexes *indexes, struct module_index *m, const struct process *p, int err)
{
	uint64_t pause_ns =
		failure_pause_ns(++m->postponed, FIRST_POSTPONED_NS, LONGEST_POSTPONED_NS);

	m->state = MODULE_INDEX_POSTPONED;
	/* Nothing is known yet, though the builds, asked without the file, may have answered. */
	m->absent = false;
	m->unopened_process = p ? p->number : 0;
	m->again_ns = indexes->now_ns + pause_ns;
	module_index_expect_samples(indexes, m);
	if (log_rate_allows_every(&indexes->postponed_log, POSTPONED_LOG_NS))
		log_warn("the index of a program or library cannot be requested now, trying again",
			"error=\"%s\"", strerror(-err));
}

/* P's file cannot be opened; another process that maps it may succeed. */
static void module_index_unopened(
	struct module_indexes *indexes, struct module_index *m, const struct process *p)
{
	if (m->index) {
		m->state = MODULE_INDEX_ANSWERED;
		m->again_ns = module_indexes_again_ns(indexes, m->index, m->late);
		return;
	}
	m->state = MODULE_INDEX_UNOPENED;
	m->unopened_process = p->number;
	indexes->known_stacks_until_ns = indexes->now_ns + KNOWN_STACKS_NS;
}

static int module_index_ask_mapped(struct module_indexes *indexes, const struct module_index *m,
	const struct process *p, const struct mapping *mapping)
{
	int open_err,
		err = index_requests_mapped(&indexes->options.requests, p, mapping, &open_err);

	/* No failure if the cache had the index. */
	return open_err && !m->index ? open_err : err;
}

/* To be called before a request, from within which the answer may come. */
static void module_index_ask_begin(struct module_index *m)
{
	assert(m->state != MODULE_INDEX_ASKED);
	m->state = MODULE_INDEX_ASKED;
	m->again_ns = 0;
	m->absent = false;
}

/* A request for P's file ended with ERR; P is NULL if the file is one of the kernel's own. */
static void module_index_asked(
	struct module_indexes *indexes, struct module_index *m, const struct process *p, int err)
{
	if (!err)
		m->postponed = 0;
	else if (failure_is_transient(err))
		module_index_postpone(indexes, m, p, err);
	else if (!p)
		module_index_answer(indexes, m, NULL);
	else
		module_index_unopened(indexes, m, p);
}

static void module_index_ask(struct module_indexes *indexes, struct module_index *m,
	const struct process *p, const struct mapping *mapping)
{
	int err;

	module_index_ask_begin(m);
	if (m->module->kind == MODULE_VDSO) {
		err = index_requests_vdso(&indexes->options.requests, m->module);
		module_index_asked(indexes, m, NULL, err);
	} else {
		err = module_index_ask_mapped(indexes, m, p, mapping);
		module_index_asked(indexes, m, p, err);
	}
}

static bool module_index_is_due(const struct module_indexes *indexes, const struct module_index *m)
{
	return m->again_ns && indexes->now_ns >= m->again_ns;
}

/* Whether a sample of P requests M's index. */
static bool module_index_may_ask(
	const struct module_indexes *indexes, const struct module_index *m, const struct process *p)
{
	switch (m->state) {
	case MODULE_INDEX_UNASKED:
		return true;
	case MODULE_INDEX_ASKED:
		return false;
	case MODULE_INDEX_UNOPENED:
		return m->unopened_process != p->number || module_index_is_due(indexes, m);
	case MODULE_INDEX_ANSWERED:
	case MODULE_INDEX_POSTPONED:
		return module_index_is_due(indexes, m);
	}
	return false;
}

/*
 * Offers the file while the process most likely lives: it may be deleted soon, or be visible to no
 * other process.
 */
static void module_index_offer_file(struct module_indexes *indexes, struct module_index *m,
	const struct process *p, const struct mapping *mapping)
{
	const struct module_indexes_options *options = &indexes->options;
	int fd;

	if (m->offered_ns > indexes->offers_from_ns && indexes->now_ns < m->offered_ns + OFFER_NS)
		return;
	m->offered_ns = indexes->now_ns;
	if (!options->wants_file(options->context, m->module))
		return;
	if (!index_requests_open(&options->requests, p, mapping, NULL, &fd))
		options->take_file(options->context, m->module, fd);
}

void module_indexes_offer_files_again(struct module_indexes *indexes)
{
	indexes->offers_from_ns = indexes->now_ns;
}

void module_indexes_hit(
	struct module_indexes *indexes, const struct process *p, const struct mapping *mapping)
{
	struct module *module = mapping->module;
	struct module_index *m;

	module->used_ns = indexes->now_ns;
	if (module->kind != MODULE_FILE && module->kind != MODULE_VDSO)
		return;
	m = module_indexes_make(indexes, module);
	if (!m)
		return;
	if (indexes->options.wants_file && module->kind == MODULE_FILE)
		module_index_offer_file(indexes, m, p, mapping);
	if (module_index_may_ask(indexes, m, p))
		module_index_ask(indexes, m, p, mapping);
}

void module_indexes_hit_kernel(
	struct module_indexes *indexes, struct module *module, uint64_t start, uint64_t end)
{
	struct module_index *m = module_indexes_make(indexes, module);

	module->used_ns = clock_monotonic_ns();
	if (!m || (m->state != MODULE_INDEX_UNASKED && !module_index_is_due(indexes, m)))
		return;
	module_index_ask_begin(m);
	module_index_asked(indexes, m, NULL,
		index_requests_kernel(&indexes->options.requests, module, start, end));
}

static const struct mapping *process_mapping_of(
	const struct process *p, const struct module *module)
{
	for (size_t i = 0; i < mappings_count(p->mappings); i++) {
		const struct mapping *mapping = mappings_at(p->mappings, i);

		if (mapping->module == module)
			return mapping;
	}
	return NULL;
}

static bool module_index_is_open_question(const struct module_index *m)
{
	return m->state != MODULE_INDEX_ASKED && m->state != MODULE_INDEX_ANSWERED;
}

bool module_indexes_wants_known_stacks(const struct module_indexes *indexes)
{
	return indexes->now_ns < indexes->known_stacks_until_ns;
}

void module_indexes_hit_again(
	struct module_indexes *indexes, const struct process *p, uint32_t number)
{
	const struct module_index *m = map_get_pointer(&indexes->by_number, number);
	const struct mapping *mapping;

	if (!m || (!module_index_is_open_question(m) && !m->late))
		return;
	mapping = process_mapping_of(p, m->module);
	if (mapping)
		module_indexes_hit(indexes, p, mapping);
}

void module_indexes_hit_program(struct module_indexes *indexes, const struct process *p)
{
	for (size_t i = 0; i < mappings_count(p->mappings); i++) {
		const struct mapping *mapping = mappings_at(p->mappings, i);

		if (mapping->module->kind == MODULE_VDSO ||
			(p->executable && mapping->module == p->executable))
			module_indexes_hit(indexes, p, mapping);
	}
}

void module_indexes_executed(struct module_indexes *indexes, struct module *program)
{
	const struct module_indexes_options *options = &indexes->options;
	struct module_index *m;
	struct module_id id;
	struct index *index;
	int err;

	m = program->kind == MODULE_FILE ? module_indexes_make(indexes, program) : NULL;
	if (!m)
		return;
	program->used_ns = clock_monotonic_ns();
	if (!module_index_is_open_question(m) || m->not_cached ||
		index_requests_identity(&options->requests, program, &id))
		return;
	err = cache_open(options->cache, &id, &index);
	host_note(HOST_NOTE_CACHED,
		&(struct note_index){ .id = &id, .error = err, .index = err ? NULL : index });
	if (!err && index_is_complete(index)) {
		metrics_add(options->requests.metrics, METRIC_INDEX_CACHE_HITS, 1);
		module_index_answer(indexes, m, index);
		m->again_ns = 0;
		return;
	}
	if (!err)
		index_destroy(index);
	m->not_cached = !failure_is_transient(err);
}

bool module_indexes_ask_postponed(struct module_indexes *indexes)
{
	struct processes *processes = indexes->options.requests.processes;
	struct module_index *m;
	size_t iterator = 0;
	bool any = false;

	while ((m = module_indexes_next(indexes, &iterator))) {
		const struct process *p = NULL;
		const struct mapping *mapping;

		if (m->state == MODULE_INDEX_POSTPONED && !m->index && m->unopened_process)
			p = processes_find(processes, m->unopened_process);
		mapping = p ? process_mapping_of(p, m->module) : NULL;
		if (mapping)
			module_index_ask(indexes, m, p, mapping);
		any |= mapping && m->state == MODULE_INDEX_POSTPONED;
	}
	return any;
}

static void module_index_ask_seen(struct module_indexes *indexes, struct module_index *m)
{
	enum module_index_state before = m->state;

	m->state = MODULE_INDEX_ASKED;
	if (index_requests_seen(&indexes->options.requests, m->module))
		m->state = before;
}

void module_indexes_identify(struct module_indexes *indexes)
{
	struct module_index *m;
	size_t iterator = 0;

	while ((m = module_indexes_next(indexes, &iterator))) {
		const struct module *module = m->module;

		if (module->kind == MODULE_FILE && file_hash_is_none(&module->id.content) &&
			module->used_ns && module_index_is_open_question(m) && !m->index)
			module_index_ask_seen(indexes, m);
	}
}

/* ---- what is there -------------------------------------------------------------------------- */

const struct index *module_indexes_get(
	const struct module_indexes *indexes, const struct module *module)
{
	const struct module_index *m = module_indexes_find(indexes, module);

	return m ? m->index : NULL;
}

bool module_indexes_is_absent(const struct module_indexes *indexes, const struct module *module)
{
	const struct module_index *m = module_indexes_find(indexes, module);

	assert(!m || !m->absent || !m->index);
	return m && m->absent;
}

bool module_indexes_is_awaited(const struct module_indexes *indexes, const struct module *module)
{
	const struct module_index *m = module_indexes_find(indexes, module);

	return m && m->state == MODULE_INDEX_ASKED && !m->index;
}

bool module_indexes_may_come(const struct module_indexes *indexes, const struct module *module)
{
	const struct module_index *m = module_indexes_find(indexes, module);

	return m && m->state == MODULE_INDEX_POSTPONED && !m->index &&
	       m->postponed <= FEW_POSTPONED;
}

void module_indexes_forget_pages(const struct module_indexes *indexes)
{
	const struct module_index *m;
	size_t iterator = 0;

	while ((m = module_indexes_next(indexes, &iterator)))
		if (m->index)
			index_forget_pages(m->index);
}

uint64_t module_indexes_bytes(const struct module_indexes *indexes)
{
	const struct module_index *m;
	uint64_t bytes = 0;
	size_t iterator = 0;

	while ((m = module_indexes_next(indexes, &iterator)))
		bytes += m->index ? index_bytes(m->index) : 0;
	return bytes;
}
