/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Module indexes over a real process table, a fake /proc and fake builds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "agent/sampler/module_indexes/module_indexes.h"
#include "tests/unit/direct_build_ids.h"
#include "tests/unit/fake_builds.h"
#include "tests/unit/process_fixture.h"
#include "tests/unit/small_index.h"

enum { OTHER = CHILD, MODULES = 16 };

static const uint64_t SECOND = 1000000000;
/* Time of the first sample. */
static const uint64_t START = UINT64_C(5000000000000);

struct world {
	struct fixture *table; /* fixture of the process table tests */
	struct builds builds;
	struct cache cache;
	struct module_indexes *indexes;
	uint64_t now_ns;
	struct index *inside; /* what `answer_inside` answers with */
	unsigned int answered, answered_none, replaced; /* number of calls */
	const struct index *last_index;
	unsigned int told, told_none; /* about functions */
	bool old_was_there; /* the old index was still there when it was replaced */
	bool wants_file;
	unsigned int asked_owner;
	int taken_fd; /* -1 = none */
};

static inline void on_answered(void *context, struct module *module, const struct index *index)
{
	struct world *w = context;

	w->answered++;
	w->answered_none += !index;
	w->last_index = index;
	assert_ptr_equal(module_indexes_get(w->indexes, module), index);
}

static inline void on_replaced(
	void *context, const struct module *module, const struct index *index)
{
	struct world *w = context;

	w->replaced++;
	w->old_was_there = module_indexes_get(w->indexes, module) == w->last_index;
	w->last_index = index;
}

static inline void on_functions(void *context, struct module *module, const struct index *index)
{
	struct world *w = context;

	w->told++;
	w->told_none += !index;
	if (index)
		assert_ptr_equal(module_indexes_get(w->indexes, module), index);
}

static inline bool on_wants_file(void *context, const struct module *module)
{
	struct world *w = context;

	assert_int_equal(module->kind, MODULE_FILE);
	w->asked_owner++;
	return w->wants_file;
}

static inline void on_take_file(void *context, const struct module *module, int fd)
{
	struct world *w = context;

	(void)module;
	assert_true(fd >= 0);
	assert_int_equal(w->taken_fd, -1);
	w->taken_fd = fd;
}

static inline void make_indexes(struct world *w, struct module_indexes_options options)
{
	options.requests = (struct index_requests){
		.opener = { .proc_fd = w->table->proc.fd, .build_ids = &direct_build_ids },
		.processes = w->table->ps,
		.builds = &w->builds,
		.debug_directories = "/usr/lib/debug",
		.metrics = &w->table->metrics,
	};
	options.cache = &w->cache;
	options.answered = on_answered;
	options.replaced = on_replaced;
	options.functions = on_functions;
	options.context = w;
	module_indexes_destroy(w->indexes);
	assert_int_equal(module_indexes_create(&options, &w->indexes), 0);
}

static inline int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w || process_set_up((void **)&w->table))
		return -1;
	w->cache.error = -ENOENT;
	w->taken_fd = -1;
	make_indexes(w, (struct module_indexes_options){ .limit = MODULES });
	*state = w;
	return 0;
}

static inline int tear_down(void **state)
{
	struct world *w = *state;

	module_indexes_destroy(w->indexes);
	index_destroy(w->inside);
	index_destroy(w->cache.index);
	if (w->taken_fd >= 0)
		close(w->taken_fd);
	process_tear_down((void **)&w->table);
	free(w);
	return 0;
}

static inline void set_time(struct world *w, uint64_t since_start_ns)
{
	w->now_ns = START + since_start_ns;
	module_indexes_set_time(w->indexes, w->now_ns);
}

/* Adds a process PID of the usual program, as /proc shows it. */
static inline struct process *process_of(struct world *w, uint32_t pid)
{
	struct process *p;

	show(w->table, pid, &w->table->program, (struct fake_process){ 0 });
	assert_int_equal(processes_scan(w->table->ps, &pid, 1), 0);
	p = sampled(w->table, pid, later);
	assert_non_null(p);
	return p;
}

/* Counts a sample of P in its program. */
static inline void hit(struct world *w, const struct process *p)
{
	const struct mapping *mapping = mappings_find(p->mappings, 0x400010);

	assert_non_null(mapping);
	module_indexes_hit(w->indexes, p, mapping);
}

static inline void hit_at(struct world *w, const struct process *p, uint64_t since_start_ns)
{
	set_time(w, since_start_ns);
	hit(w, p);
}

static inline struct module *program_of(const struct process *p)
{
	return mappings_find(p->mappings, 0x400010)->module;
}

static inline const struct fake_request *last_request(const struct world *w)
{
	assert_true(w->builds.request_count > 0);
	return &w->builds.requests[(w->builds.request_count - 1) % FAKE_BUILDS_REQUESTS];
}

static inline struct index *index_from(uint32_t sources)
{
	struct index_writer *writer = create();

	function(writer, "main", 0, 100);
	writer_source(writer, sources);
	return finish(writer);
}

static inline struct index *with_lines(void)
{
	return index_from(INDEX_SOURCE_SYMTAB | INDEX_SOURCE_DWARF);
}

static inline struct index *without_lines(void)
{
	return index_from(INDEX_SOURCE_SYMTAB);
}

static inline void answer(struct world *w, const struct process *p, struct index *index)
{
	module_indexes_answer(w->indexes, program_of(p)->number, index);
}

static inline void answer_inside(void *context, uint64_t tag)
{
	struct world *w = context;
	struct index *index = w->inside;

	w->inside = NULL;
	module_indexes_answer(w->indexes, tag, index);
}

static inline void answer_at_once(struct world *w)
{
	w->builds.answer = answer_inside;
	w->builds.context = w;
}

/* Removes the program's file, but leaves a hard link to it named *.kept. */
static inline void remove_program(const struct world *w)
{
	char kept[PATH_MAX + 8];

	snprintf(kept, sizeof(kept), "%s.kept", w->table->program.path);
	assert_int_equal(link(w->table->program.path, kept), 0);
	assert_int_equal(unlink(w->table->program.path), 0);
}

static inline void show_kept_program(struct world *w, uint32_t pid)
{
	char kept[PATH_MAX + 8];

	snprintf(kept, sizeof(kept), "%s.kept", w->table->program.path);
	fake_proc_map_file(&w->table->proc, pid, 0x400000, 0x401000, kept);
}

#undef CASE
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
