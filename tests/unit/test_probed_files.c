/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/probed_files: from mappings and indexes to attached probes, with a fake kernel. */
#include "agent/sampler/probed_files/probed_files.h"
#include "tests/unit/fake_latency.h"
#include "tests/unit/small_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- a fake owner --------------------------------------------------------------------------- */

enum { PROGRAM, LIBRARY, MODULES };

struct fixture {
	struct latency latency;
	struct function_patterns wanted, unwanted;
	struct probed_files_options options;
	struct probed_files *files;
	struct module modules[MODULES];
	struct process process;
	struct index_writer *writer;
	struct index *index;
	int open_error, want_error, check_error;
	unsigned int opened, asked;
	bool answers_at_once, changed, fibers_known, left_out;
};

static bool on_selects(void *context, const struct process *p)
{
	const struct fixture *f = context;

	assert_ptr_equal(p, &f->process);
	return !f->left_out;
}

static int on_open(void *context, const struct process *p, const struct mapping *m, int *ret_fd)
{
	struct fixture *f = context;

	assert_ptr_equal(p, &f->process);
	assert_non_null(m->module);
	f->opened++;
	if (f->open_error)
		return f->open_error;
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(*ret_fd >= 0);
	return 0;
}

static int on_want(void *context, const struct process *p, const struct mapping *m)
{
	struct fixture *f = context;

	(void)p;
	f->asked++;
	if (f->answers_at_once)
		probed_files_index(f->files, m->module, f->index);
	return f->want_error;
}

static int on_check_file(void *context, const struct module *module, int fd)
{
	const struct fixture *f = context;

	assert_non_null(module);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	return f->changed ? -ESTALE : f->check_error;
}

static bool on_fibers(void *context, const struct index *index, struct abi_runtime_process *ret_how)
{
	const struct fixture *f = context;

	assert_non_null(index);
	*ret_how = (struct abi_runtime_process){ .go = { .g_goid = 152 } };
	return f->fibers_known;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->latency.function_limit = 16;
	f->modules[PROGRAM] = (struct module){ .number = 7, .path = (char *)"/usr/bin/app" };
	f->modules[LIBRARY] = (struct module){ .number = 8, .path = (char *)"/usr/lib/libc.so.6" };
	f->process = (struct process){ .pid = 100, .executable = &f->modules[PROGRAM] };
	f->fibers_known = true;
	f->options = (struct probed_files_options){ .wanted = &f->wanted,
		.unwanted = &f->unwanted,
		.max_functions = 10,
		.latency = &f->latency,
		.selects = on_selects,
		.open = on_open,
		.want = on_want,
		.check_file = on_check_file,
		.fibers = on_fibers,
		.context = f };
	f->writer = create();
	writer_source(f->writer, INDEX_SOURCE_FUNCTIONS);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	probed_files_destroy(f->files);
	assert_int_equal(f->latency.detached, f->latency.attached);
	function_patterns_deinit(&f->wanted);
	function_patterns_deinit(&f->unwanted);
	if (f->writer)
		index_writer_destroy(f->writer);
	index_destroy(f->index);
	free(f);
	return 0;
}

/* A function at TEXT + OFFSET that returns 8 bytes further. */
static void has(struct fixture *f, const char *name, uint64_t offset, uint32_t flags)
{
	const uint64_t at = TEXT + offset + 8;
	struct writer_function function = { .address = TEXT + offset,
		.linkage = string(f->writer, name),
		.flags = flags,
		.stack_check = 64,
		.restart_off = 7,
		.return_count = !(flags & INDEX_FUNCTION_NO_RETURN) };

	if (function.return_count)
		assert_int_equal(writer_returns(f->writer, &at, 1, &function.first_return), 0);
	assert_int_equal(writer_function(f->writer, &function), 0);
}

static void begin(struct fixture *f, const char *pattern)
{
	const char *problem;

	assert_int_equal(function_patterns_add(&f->wanted, pattern, &problem), 0);
	f->index = finish(take(f->writer));
	assert_int_equal(probed_files_create(&f->options, &f->files), 0);
}

static void maps(struct fixture *f, int module)
{
	const struct mapping mapping = {
		.start = 0x1000, .end = 0x2000, .module = &f->modules[module]
	};

	probed_files_mapped(f->files, &f->process, &mapping);
}

static void answer(struct fixture *f, int module)
{
	probed_files_index(f->files, &f->modules[module], f->index);
}

static enum probed_file_state state_of(const struct fixture *f, size_t file)
{
	return probed_files_at(f->files, file).state;
}

/* ---- the usual ------------------------------------------------------------------------------ */

static void a_program_is_probed_when_its_index_arrives(void **state)
{
	struct fixture *f = *state;
	const struct probed_function *function;

	has(f, "serve", 0x100, 0);
	has(f, "other", 0x200, 0);
	begin(f, "serve");
	maps(f, PROGRAM);
	assert_int_equal(probed_files_waiting(f->files), 1);
	assert_int_equal(f->latency.attached, 0);
	answer(f, PROGRAM);
	assert_int_equal(probed_files_waiting(f->files), 0);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	assert_int_equal(f->latency.site_count, 2);
	assert_false(f->latency.sites[0].is_return);
	assert_true(f->latency.sites[1].is_return);
	assert_int_equal(f->latency.sites[1].file_off - f->latency.sites[0].file_off, 8);
	assert_int_equal(probed_functions_count(f->files), 1);
	function = probed_functions_of_probe(f->files, 0);
	assert_string_equal(function->name, "serve");
	assert_int_equal(function->address, TEXT + 0x100);
	assert_int_equal(function->state, PROBED_FUNCTION_MEASURED);
	assert_null(probed_functions_of_probe(f->files, 1));
	assert_int_equal(f->latency.functions[0].flags, 0);
	assert_int_equal(probed_files_matches(f->files, 0), 1);
}

static void a_file_that_does_not_answer_is_opened_again(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->answers_at_once = true;
	f->open_error = -EAGAIN;
	maps(f, PROGRAM);
	f->open_error = 0;
	f->want_error = -EAGAIN;
	f->answers_at_once = false;
	maps(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_OPENED);
	assert_int_equal(probed_files_at(f->files, 0).err, -EAGAIN);
	f->want_error = 0;
	f->check_error = -EAGAIN;
	f->answers_at_once = true;
	maps(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_OPENED);
	assert_int_equal(probed_functions_count(f->files), 0);
	f->check_error = 0;
	maps(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	assert_int_equal(f->latency.attached, 1);
	assert_int_equal(probed_functions_count(f->files), 1);
	/* It was not written to, only because it does not answer. */
	f->check_error = -EAGAIN;
	probed_files_check(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	assert_int_equal(f->latency.detached, 0);
	f->check_error = -ESTALE;
	probed_files_check(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_CHANGED);
}

static void a_file_is_probed_once(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->answers_at_once = true;
	maps(f, PROGRAM);
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->opened, 1);
	assert_int_equal(f->latency.attached, 1);
	assert_int_equal(probed_files_count(f->files), 1);
}

static void libraries_need_a_pattern_that_names_them(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	maps(f, LIBRARY);
	assert_int_equal(probed_files_count(f->files), 0);
	maps(f, PROGRAM);
	assert_int_equal(probed_files_count(f->files), 1);
}

static void a_named_library_is_probed(void **state)
{
	struct fixture *f = *state;

	has(f, "malloc", 0x100, 0);
	begin(f, "libc:malloc");
	maps(f, PROGRAM);
	assert_int_equal(f->opened, 0);
	maps(f, LIBRARY);
	answer(f, LIBRARY);
	assert_int_equal(f->latency.attached, 1);
	assert_string_equal(probed_files_at(f->files, 0).path, "/usr/lib/libc.so.6");
}

static void processes_that_are_not_selected_change_nothing(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->left_out = true;
	maps(f, PROGRAM);
	assert_int_equal(probed_files_count(f->files), 0);
}

static void an_index_without_functions_is_not_the_answer(void **state)
{
	struct fixture *f = *state;
	struct index_writer *plain = create();
	struct index *index;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	function(plain, "serve", 0x100, 0x200);
	index = finish(plain);
	maps(f, PROGRAM);
	probed_files_index(f->files, &f->modules[PROGRAM], index);
	assert_int_equal(state_of(f, 0), PROBED_FILE_WAITING);
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	index_destroy(index);
}

static void fibers_are_known_by_their_runtime(void **state)
{
	struct fixture *f = *state;

	has(f, "main.serve", 0x100, INDEX_FUNCTION_FIBER);
	begin(f, "main.*");
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.functions[0].flags, ABI_LATENCY_FIBER | ABI_LATENCY_AGAIN_SITE);
	assert_int_equal(f->latency.functions[0].stack_check, 64);
	assert_int_equal(f->latency.functions[0].restart_off, 7);
	assert_int_equal(f->latency.functions[0].go.g_goid, 152);
}

static void where_a_function_begins_again_is_probed(void **state)
{
	struct fixture *f = *state;
	const struct latency_site *sites = f->latency.sites;

	has(f, "main.serve", 0x100, INDEX_FUNCTION_FIBER);
	has(f, "main.tail", 0x200, INDEX_FUNCTION_FIBER | INDEX_FUNCTION_TAIL_JUMP);
	has(f, "main.c", 0x300, 0);
	begin(f, "main.*");
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.site_count, 3 + 2 + 2);
	assert_false(sites[0].is_again || sites[0].is_return);
	assert_true(sites[1].is_again && !sites[1].is_return);
	assert_int_equal(sites[1].file_off - sites[0].file_off, 7);
	assert_true(sites[2].is_return && !sites[2].is_again);
	for (size_t i = 3; i < f->latency.site_count; i++)
		assert_false(sites[i].is_again);
	assert_true(probed_functions_at(f->files, 0)->restarts);
	assert_false(probed_functions_at(f->files, 1)->restarts);
	assert_int_equal(f->latency.functions[1].flags, ABI_LATENCY_FIBER);
	assert_int_equal(f->latency.functions[2].flags, 0);
}

static void unknown_fibers_are_not_measured(void **state)
{
	struct fixture *f = *state;

	has(f, "main.serve", 0x100, INDEX_FUNCTION_FIBER);
	begin(f, "main.*");
	f->fibers_known = false;
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.function_count, 0);
	assert_int_equal(probed_functions_at(f->files, 0)->state, PROBED_FUNCTION_UNKNOWN_FIBERS);
}

static bool on_ends_fiber(const char *linkage)
{
	return !strcmp(linkage, "runtime.goexit1");
}

/* Where fibers end is probed, but nobody named it: it is not listed. */
static void ends_of_fibers_are_probed(void **state)
{
	struct fixture *f = *state;

	has(f, "main.serve", 0x100, INDEX_FUNCTION_FIBER);
	has(f, "runtime.goexit1", 0x200, INDEX_FUNCTION_FIBER | INDEX_FUNCTION_NO_RETURN);
	f->options.ends_fiber = on_ends_fiber;
	begin(f, "main.*");
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.function_count, 2);
	assert_int_equal(f->latency.functions[0].flags, ABI_LATENCY_FIBER | ABI_LATENCY_AGAIN_SITE);
	assert_int_equal(f->latency.functions[1].flags, ABI_LATENCY_FIBER | ABI_LATENCY_FIBER_END);
	assert_int_equal(f->latency.functions[1].go.g_goid, 152);
	assert_int_equal(f->latency.site_count, 4);
	assert_int_equal(f->latency.sites[3].function, 1);
	assert_false(f->latency.sites[3].is_return || f->latency.sites[3].is_again);
	assert_int_equal(probed_functions_count(f->files), 1);
	assert_null(probed_functions_of_probe(f->files, 1));
}

/* That is no failure of the functions that are listed. */
static void an_end_of_fibers_may_be_refused(void **state)
{
	struct fixture *f = *state;

	has(f, "main.serve", 0x100, INDEX_FUNCTION_FIBER);
	has(f, "runtime.goexit1", 0x200, INDEX_FUNCTION_FIBER | INDEX_FUNCTION_NO_RETURN);
	f->options.ends_fiber = on_ends_fiber;
	begin(f, "main.*");
	f->latency.refused_off = TEXT + 0x200 - index_segment(f->index, 0).address +
				 index_segment(f->index, 0).file_off;
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.site_count, 3);
	assert_int_equal(probed_functions_at(f->files, 0)->state, PROBED_FUNCTION_MEASURED);
}

static void an_end_of_fibers_alone_is_not_probed(void **state)
{
	struct fixture *f = *state;

	has(f, "runtime.goexit1", 0x200, INDEX_FUNCTION_FIBER | INDEX_FUNCTION_NO_RETURN);
	f->options.ends_fiber = on_ends_fiber;
	begin(f, "main.*");
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.function_count, 0);
}

static void a_dry_run_attaches_nothing(void **state)
{
	struct fixture *f = *state;
	const struct probed_function *refused;

	has(f, "serve", 0x100, 0);
	has(f, "serve_forever", 0x200, INDEX_FUNCTION_NO_RETURN);
	f->options.dry_run = true;
	f->options.latency = NULL;
	begin(f, "serve*");
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	assert_int_equal(f->latency.function_count, 0);
	assert_int_equal(probed_functions_count(f->files), 2);
	refused = probed_functions_at(f->files, 0);
	assert_string_equal(refused->name, "serve_forever");
	assert_int_equal(refused->state, PROBED_FUNCTION_REFUSED);
	assert_int_equal(refused->refusal, FUNCTION_NO_RETURN);
	assert_int_equal(probed_functions_at(f->files, 1)->state, PROBED_FUNCTION_MEASURED);
}

static void a_file_may_be_added_before_it_is_mapped(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	assert_int_equal(probed_files_add(f->files, &f->modules[PROGRAM],
				 open("/dev/null", O_RDONLY | O_CLOEXEC), true),
		0);
	answer(f, PROGRAM);
	assert_int_equal(f->latency.attached, 1);
	maps(f, PROGRAM);
	assert_int_equal(f->opened, 0);
}

/* ---- failures ------------------------------------------------------------------------------- */

static void a_file_that_cannot_be_opened_is_tried_at_the_next_mapping(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->open_error = -ESRCH;
	maps(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_OPENED);
	assert_int_equal(probed_files_at(f->files, 0).err, -ESRCH);
	f->open_error = 0;
	maps(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_WAITING);
	assert_int_equal(probed_files_count(f->files), 1);
}

static void a_refused_request_is_no_index_until_one_comes(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->want_error = -EBADMSG;
	maps(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NO_INDEX);
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
}

static void no_index_is_said(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	maps(f, PROGRAM);
	probed_files_index(f->files, &f->modules[PROGRAM], NULL);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NO_INDEX);
	assert_int_equal(probed_files_waiting(f->files), 0);
}

static void too_many_functions_are_all_refused(void **state)
{
	struct fixture *f = *state;

	has(f, "serve_a", 0x100, 0);
	has(f, "serve_b", 0x200, 0);
	f->options.max_functions = 1;
	begin(f, "serve*");
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_ATTACHED);
	assert_int_equal(probed_files_at(f->files, 0).err, -E2BIG);
	assert_int_equal(probed_files_at(f->files, 0).probeable, 2);
	assert_int_equal(f->latency.function_count, 0);
}

static void what_cannot_be_attached_leaves_nothing_behind(void **state)
{
	struct fixture *f = *state;

	has(f, "serve_a", 0x100, 0);
	has(f, "serve_b", 0x200, 0);
	begin(f, "serve*");
	f->latency.attach_error = -EPERM;
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_ATTACHED);
	assert_string_equal(probed_files_at(f->files, 0).step, "attach in the fake kernel");
	assert_int_equal(f->latency.removed, 2);
	assert_null(probed_functions_of_probe(f->files, 0));
}

static void functions_over_the_limit_of_the_kernel_are_removed_again(void **state)
{
	struct fixture *f = *state;

	has(f, "serve_a", 0x100, 0);
	has(f, "serve_b", 0x200, 0);
	begin(f, "serve*");
	f->latency.function_limit = 1;
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(probed_files_at(f->files, 0).err, -E2BIG);
	assert_int_equal(f->latency.removed, 1);
	assert_int_equal(f->latency.attached, 0);
}

static void a_function_with_a_refused_site_is_not_shown_as_measured(void **state)
{
	struct fixture *f = *state;
	uint64_t first;

	has(f, "serve_a", 0x100, 0);
	has(f, "serve_b", 0x200, 0);
	begin(f, "serve*");
	assert_true(index_segment_count(f->index) > 0);
	first = TEXT + 0x100 - index_segment(f->index, 0).address +
		index_segment(f->index, 0).file_off;
	f->latency.refused_off = first + 8;
	maps(f, PROGRAM);
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	assert_int_equal(probed_functions_at(f->files, 0)->state, PROBED_FUNCTION_NOT_PROBEABLE);
	assert_int_equal(probed_functions_at(f->files, 1)->state, PROBED_FUNCTION_MEASURED);
}

static void a_file_written_to_before_it_is_attached_is_not(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	maps(f, PROGRAM);
	f->changed = true;
	answer(f, PROGRAM);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_ATTACHED);
	assert_int_equal(probed_files_at(f->files, 0).err, -ESTALE);
	assert_int_equal(f->latency.attached, 0);
}

static void a_file_that_is_written_to_is_detached(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->answers_at_once = true;
	maps(f, PROGRAM);
	probed_files_check(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	f->changed = true;
	probed_files_check(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_CHANGED);
	assert_int_equal(f->latency.detached, 1);
	/* What was measured can still be named. */
	assert_non_null(probed_functions_of_probe(f->files, 0));
}

static void a_module_that_is_freed_is_detached(void **state)
{
	struct fixture *f = *state;

	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	f->answers_at_once = true;
	maps(f, PROGRAM);
	probed_files_keep(f->files, 1234);
	assert_int_equal(f->modules[PROGRAM].used_ns, 1234);
	probed_files_forget(f->files, &f->modules[PROGRAM]);
	assert_int_equal(f->latency.detached, 1);
	f->modules[PROGRAM].used_ns = 0;
	probed_files_keep(f->files, 1235);
	assert_int_equal(f->modules[PROGRAM].used_ns, 0);
	probed_files_check(f->files);
	probed_files_detach(f->files);
	assert_int_equal(f->latency.detached, 1);
}

/* ---- in the background ---------------------------------------------------------------------- */

static void begin_in_background(struct fixture *f)
{
	f->options.in_background = true;
	f->options.by = ABI_LATENCY_BY_CGROUP;
	f->options.set = 5;
	has(f, "serve", 0x100, 0);
	begin(f, "serve");
	maps(f, PROGRAM);
}

static void nothing_waits_for_a_process_that_attaches(void **state)
{
	struct fixture *f = *state;

	f->latency.silent = true;
	begin_in_background(f);
	assert_false(probed_files_is_busy(f->files));
	answer(f, PROGRAM);
	probed_files_tend(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_ATTACHING);
	assert_int_equal(probed_files_at(f->files, 0).sites, 0);
	f->latency.silent = false;
	probed_files_tend(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
	assert_int_equal(probed_files_at(f->files, 0).sites, 2);
	assert_int_equal(f->latency.attaching, 0);
	assert_false(probed_files_is_busy(f->files));
	assert_int_equal(f->latency.functions[0].by, ABI_LATENCY_BY_CGROUP);
	assert_int_equal(f->latency.functions[0].set, 5);
	probed_files_end(f->files);
}

static void too_many_processes_are_waited_for(void **state)
{
	struct fixture *f = *state;

	f->latency.begin_error = -EAGAIN;
	begin_in_background(f);
	answer(f, PROGRAM);
	probed_files_tend(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_ATTACHING);
	assert_true(probed_files_is_busy(f->files));
	f->latency.begin_error = 0;
	probed_files_tend(f->files);
	probed_files_tend(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
}

/* A process that hangs may attach its sites when it goes on: their numbers stay taken. */
static void functions_are_ended_that_could_not_be_attached(void **state)
{
	struct fixture *f = *state;

	f->latency.attach_error = -ETIMEDOUT;
	begin_in_background(f);
	answer(f, PROGRAM);
	probed_files_tend(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NOT_ATTACHED);
	assert_int_equal(probed_files_at(f->files, 0).err, -ETIMEDOUT);
	assert_int_equal(f->latency.ended, 1);
	assert_int_equal(f->latency.removed, 0);
	probed_files_destroy(take(f->files));
	assert_int_equal(f->latency.removed, 1);
}

static void what_is_ended_counts_no_more_before_it_is_detached(void **state)
{
	struct fixture *f = *state;

	begin_in_background(f);
	answer(f, PROGRAM);
	probed_files_tend(f->files);
	f->latency.silent = true;
	probed_files_end(f->files);
	assert_int_equal(f->latency.ended, 1);
	assert_int_equal(f->latency.detaching, 1);
	assert_true(probed_files_is_busy(f->files));
	assert_non_null(probed_functions_of_probe(f->files, 0));
	assert_int_equal(f->latency.removed, 0);
	f->latency.silent = false;
	probed_files_tend(f->files);
	assert_false(probed_files_is_busy(f->files));
	assert_int_equal(f->latency.detaching, 0);
}

static void what_is_being_attached_can_be_ended(void **state)
{
	struct fixture *f = *state;

	f->latency.silent = true;
	begin_in_background(f);
	answer(f, PROGRAM);
	probed_files_end(f->files);
	assert_int_equal(f->latency.cancelled, 1);
	assert_int_equal(state_of(f, 0), PROBED_FILE_ENDED);
	assert_true(probed_files_is_busy(f->files));
	probed_files_destroy(take(f->files));
	assert_int_equal(f->latency.abandoned, 1);
	f->latency.detached++; /* the fake's */
}

static void an_index_that_did_not_come_is_asked_for_again(void **state)
{
	struct fixture *f = *state;

	begin_in_background(f);
	probed_files_index(f->files, &f->modules[PROGRAM], NULL);
	assert_int_equal(state_of(f, 0), PROBED_FILE_NO_INDEX);
	maps(f, PROGRAM);
	assert_int_equal(f->asked, 2);
	answer(f, PROGRAM);
	probed_files_tend(f->files);
	assert_int_equal(state_of(f, 0), PROBED_FILE_READY);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_program_is_probed_when_its_index_arrives),
		CASE(a_file_that_does_not_answer_is_opened_again),
		CASE(a_file_is_probed_once),
		CASE(libraries_need_a_pattern_that_names_them),
		CASE(a_named_library_is_probed),
		CASE(processes_that_are_not_selected_change_nothing),
		CASE(an_index_without_functions_is_not_the_answer),
		CASE(fibers_are_known_by_their_runtime),
		CASE(where_a_function_begins_again_is_probed),
		CASE(unknown_fibers_are_not_measured),
		CASE(ends_of_fibers_are_probed),
		CASE(an_end_of_fibers_may_be_refused),
		CASE(an_end_of_fibers_alone_is_not_probed),
		CASE(a_dry_run_attaches_nothing),
		CASE(a_file_may_be_added_before_it_is_mapped),
		CASE(a_file_that_cannot_be_opened_is_tried_at_the_next_mapping),
		CASE(a_refused_request_is_no_index_until_one_comes),
		CASE(no_index_is_said),
		CASE(too_many_functions_are_all_refused),
		CASE(what_cannot_be_attached_leaves_nothing_behind),
		CASE(functions_over_the_limit_of_the_kernel_are_removed_again),
		CASE(a_function_with_a_refused_site_is_not_shown_as_measured),
		CASE(a_file_written_to_before_it_is_attached_is_not),
		CASE(a_file_that_is_written_to_is_detached),
		CASE(a_module_that_is_freed_is_detached),
		CASE(nothing_waits_for_a_process_that_attaches),
		CASE(too_many_processes_are_waited_for),
		CASE(functions_are_ended_that_could_not_be_attached),
		CASE(what_is_ended_counts_no_more_before_it_is_detached),
		CASE(what_is_being_attached_can_be_ended),
		CASE(an_index_that_did_not_come_is_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
