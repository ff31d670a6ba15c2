/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes with functions, for those who probe them. */
#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "agent/sampler/module_indexes/module_indexes_internal.h"
#include "base/cleanup.h"
#include "symbolizer/index/functions.h"

static const struct index *module_index_with_functions(const struct module_index *m)
{
	return m->index && index_has_functions(m->index) ? m->index : NULL;
}

void module_index_tell_functions(struct module_indexes *indexes, struct module_index *m)
{
	if (m->functions != MODULE_FUNCTIONS_WANTED)
		return;
	m->functions = MODULE_FUNCTIONS_TOLD;
	m->told_ns = indexes->now_ns;
	indexes->options.functions(
		indexes->options.context, m->module, module_index_with_functions(m));
}

/* Whether the last answer holds: it had functions, or a build would hardly have them yet. */
static bool module_index_answer_holds(
	const struct module_indexes *indexes, const struct module_index *m)
{
	return module_index_with_functions(m) ||
	       (m->functions == MODULE_FUNCTIONS_TOLD &&
		       indexes->now_ns < m->told_ns + MODULE_INDEX_ABSENT_NS);
}

/* What is wanted: the file that P maps in MAPPING, or, P NULL, that of MODULE, open as FD. */
struct wanted_file {
	const struct process *p;
	const struct mapping *mapping;
	struct module *module;
	int fd;
};

static int module_index_ask_functions(
	struct module_indexes *indexes, struct module_index *m, struct wanted_file *file)
{
	const struct index_requests *requests = &indexes->options.requests;
	enum module_functions wanted_before = m->functions;
	enum module_index_state state_before = m->state;
	int err;

	m->functions = MODULE_FUNCTIONS_WANTED;
	m->state = MODULE_INDEX_ASKED;
	/* The answer may come from within the call. */
	err = file->p ? index_requests_functions(requests, file->p, file->mapping)
		      : index_requests_functions_of(requests, m->module, take_fd(&file->fd));
	if (err) {
		m->functions = wanted_before;
		m->state = state_before;
	}
	return err;
}

static int want_functions(struct module_indexes *indexes, struct wanted_file *file)
{
	struct module_index *m;

	assert(indexes->options.functions);
	if (file->module->kind != MODULE_FILE)
		return -EOPNOTSUPP;
	m = module_indexes_make(indexes, file->module);
	if (!m)
		return -ENOMEM;
	file->module->used_ns = indexes->now_ns;
	if (m->functions == MODULE_FUNCTIONS_WANTED)
		return 0;
	if (!module_index_answer_holds(indexes, m))
		return module_index_ask_functions(indexes, m, file);
	indexes->options.functions(
		indexes->options.context, m->module, module_index_with_functions(m));
	return 0;
}

int module_indexes_want_functions(
	struct module_indexes *indexes, const struct process *p, const struct mapping *mapping)
{
	return want_functions(
		indexes, &(struct wanted_file){
				 .p = p, .mapping = mapping, .module = mapping->module, .fd = -1 });
}

int module_indexes_want_functions_of(struct module_indexes *indexes, struct module *module, int fd)
{
	struct wanted_file file = { .module = module, .fd = fd };
	int err = want_functions(indexes, &file);

	if (file.fd >= 0)
		close(file.fd);
	return err;
}
