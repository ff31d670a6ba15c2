/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom trace`: functions are chosen, probed and released as by `fathom latency`
 * (agent/commands/latency_run.c). Here the events of their calls become trees, and trees text.
 */
#include "agent/commands/trace_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/latency_run.h"
#include "agent/commands/output_file.h"
#include "agent/commands/trace_output.h"
#include "agent/sampler/sampler_trace.h"
#include "agent/trace/trace_json.h"
#include "agent/trace/trace_summary.h"
#include "agent/trace/trace_text.h"
#include "agent/trace/trace_trees.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"

enum {
	MAX_CALLS = 100000, /* in a tree */
	MAX_TREES_BYTES = 64 << 20, /* of all trees that have not returned */
	MAX_TEXT_BYTES = 64 << 20, /* of one tree */
	MAX_PLACES = 1 << 18,
	MAX_PLACES_BYTES = 32 << 20,
	MAX_PROCESSES = 1 << 16,
	PLACE_BYTES = 4200, /* of the longest text of a place */
};

/* So often trees that are open are printed in parts. */
static const uint64_t PART_NS = UINT64_C(10000000000);
static const uint64_t TICK_NS = UINT64_C(1000000000);

struct trace_run {
	const struct trace_plan *plan;
	struct trace_options probe;
	struct sampler_trace_options events;
	struct sampler *sampler; /* borrowed; NULL = not created yet */
	struct loop *loop; /* borrowed */
	struct trace_trees trees;
	struct trace_summary summary;
	struct trace_names names;
	struct trace_arguments arguments;
	struct trace_output out;
	struct intern texts; /* of places, and names of processes */
	struct map processes; /* pid → number in `texts` */
	struct map kernel; /* number of a function → struct kernel_function */
	bool color;
	bool any; /* trees were printed */
	int timer; /* −1 = none */
	int events_fd; /* file of -o; -1 = none */
	int error; /* of making text; 0 = none */
};

static int trace_run_fail(const char *what, int err)
{
	fprintf(stderr, "fathom trace: %s: %s\n", what, strerror(-err));
	return err;
}

/* ---- names ---------------------------------------------------------------------------------- */

static const char *trace_run_function(void *context, uint32_t number)
{
	const struct trace_run *r = context;
	const struct kernel_function *kernel = map_get_pointer(&r->kernel, number);
	const struct probed_function *function =
		probed_functions_of_probe(sampler_probed_files(r->sampler), number);

	if (kernel)
		return kernel->name;
	return function ? function->name : "??";
}

static bool trace_run_has_parameters(void *context, uint32_t number)
{
	const struct trace_run *r = context;
	const struct probed_function *function =
		probed_functions_of_probe(sampler_probed_files(r->sampler), number);

	return function && !strncmp(function->linkage, "_Z", 2) && strchr(function->name, '(');
}

static const char *trace_run_text(void *context, uint32_t number)
{
	const struct trace_run *r = context;

	return intern_text(&r->texts, number);
}

static const char *trace_run_process(void *context, uint32_t pid)
{
	const struct trace_run *r = context;
	uint64_t number;

	return map_get(&r->processes, pid, &number) ? intern_text(&r->texts, (uint32_t)number) : "";
}

static uint32_t trace_run_place(struct trace_run *r, const struct abi_trace_event *event)
{
	const struct sampler_place place =
		event->flags & ABI_TRACE_KERNEL
			? sampler_trace_kernel_place(r->sampler, event->caller)
			: sampler_trace_place(r->sampler, event->tgid, event->caller);
	const char *slash = place.module ? strrchr(place.module, '/') : NULL;
	char text[PLACE_BYTES];
	uint32_t number;

	if (place.kind == SAMPLER_PLACE_UNKNOWN)
		return 0;
	if (place.kind == SAMPLER_PLACE_KERNEL)
		snprintf(text, sizeof(text), "%s+0x%llx%s%s%s", place.symbol,
			(unsigned long long)place.address, *place.module ? " [" : "", place.module,
			*place.module ? "]" : "");
	else if (place.kind == SAMPLER_PLACE_LINE)
		snprintf(text, sizeof(text), "%s:%u", place.file, place.line);
	else
		snprintf(text, sizeof(text), "%s+0x%llx", slash ? slash + 1 : place.module,
			(unsigned long long)place.address);
	return intern_string(&r->texts, text, &number) ? 0 : number;
}

static void trace_run_note_process(struct trace_run *r, uint32_t pid)
{
	char comm[64];
	uint32_t number;

	sampler_latency_comm(r->sampler, pid, comm, sizeof(comm));
	if (*comm && !intern_string(&r->texts, comm, &number))
		(void)map_set(&r->processes, pid, number);
}

static void trace_run_values_text(void *context, uint32_t function, bool results,
	const void *payload, size_t size, struct buffer *out)
{
	const struct trace_run *r = context;

	trace_arguments_text(&r->arguments, function, results, payload, size, out);
}

static void trace_run_values_json(void *context, uint32_t function, bool results,
	const void *payload, size_t size, struct json *j)
{
	const struct trace_run *r = context;

	trace_arguments_json(&r->arguments, function, results, payload, size, j);
}

static bool trace_run_has_values(void *context, uint32_t function)
{
	const struct trace_run *r = context;

	return trace_arguments_has_values(&r->arguments, function);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void trace_run_on_event(void *context, const struct abi_trace_event *event)
{
	struct trace_run *r = context;
	uint32_t place = 0;

	if (!r->sampler)
		return;
	if (event->what == ABI_TRACE_ENTRY)
		place = trace_run_place(r, event);
	if (event->what == ABI_TRACE_ENTRY && !event->level)
		trace_run_note_process(r, event->tgid);
	trace_trees_event(&r->trees, event, event + 1, place);
}

static void trace_run_on_chosen(void *context, struct sampler *sampler,
	const struct probed_chosen *file, const struct probed_function *functions, size_t count)
{
	struct trace_run *r = context;

	trace_arguments_chosen(&r->arguments, sampler, file, functions, count);
}

static void trace_run_on_exit(void *context, uint32_t pid, uint32_t tid)
{
	struct trace_run *r = context;

	trace_trees_exit(&r->trees, pid, tid);
}

/* Appends TREE in the form that was asked for. */
static int trace_run_put(
	const struct trace_run *r, const struct trace_tree *tree, struct buffer *out)
{
	if (r->plan->events)
		return trace_events_tree(tree, &r->names, !r->any, out);
	if (r->plan->probing.json)
		return trace_json_tree(tree, &r->names, out);
	return trace_text_tree(tree, &r->names, r->color, out);
}

static void trace_run_on_tree(void *context, const struct trace_tree *tree)
{
	struct trace_run *r = context;
	autocall(buffer_deinit) struct buffer text = { 0 };
	int err = trace_summary_add(&r->summary, tree);

	if (!tree->count)
		return;
	buffer_init(&text, MAX_TEXT_BYTES);
	if (!err)
		err = trace_run_put(r, tree, &text);
	if (err)
		r->error = err;
	else if (!trace_output_add(&r->out, &text))
		r->summary.not_printed++;
	else
		r->any = true;
}

static void trace_run_on_failed_output(void *context)
{
	struct trace_run *r = context;

	loop_stop(r->loop);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void trace_run_options(
	void *context, struct sampler_options *options, struct sampler_latency_options *latency)
{
	struct trace_run *r = context;
	const struct trace_plan *plan = r->plan;

	trace_arguments_use_loop(&r->arguments, options->loop);
	r->probe = (struct trace_options){
		.max_depth = plan->max_depth,
		.drilldown = plan->drilldown.count > 0,
		.max_events_per_second = plan->max_events_per_second,
		.max_fetches = trace_rules_any(&plan->rules) ? ABI_FETCHES_OF_ALL : 0,
	};
	r->events = (struct sampler_trace_options){
		.event = trace_run_on_event,
		.exit = trace_run_on_exit,
		.chosen = trace_rules_any(&plan->rules) && !plan->probing.dry_run
				  ? trace_run_on_chosen
				  : NULL,
		.program = plan->program.count && plan->probing.kernel_wanted.count
				   ? &plan->program.items[0]
				   : NULL,
		.context = r,
	};
	latency->roots = &plan->drilldown;
	latency->kernel_roots = &plan->kernel_drilldown;
	latency->probe.kernel_by_sets = r->events.program != NULL;
	/* Nothing is added up. */
	latency->probe.max_calls_per_second = 0;
	latency->probe.max_open_calls = 1;
	latency->probe.max_cells = 1;
	options->trace = &r->events;
	if (!plan->probing.dry_run)
		options->collect.trace = &r->probe;
}

/* Writes what is around all events. */
static int trace_run_frame(struct trace_run *r, int (*put)(struct buffer *out))
{
	autocall(buffer_deinit) struct buffer text = { 0 };
	int err;

	buffer_init(&text, MAX_TEXT_BYTES);
	err = put(&text);
	if (!err && !trace_output_add(&r->out, &text))
		err = r->out.error;
	return err;
}

static void trace_run_on_tick(void *context)
{
	struct trace_run *r = context;

	trace_trees_tick(&r->trees, clock_monotonic_ns());
}

static int trace_run_list_kernel(struct trace_run *r, const struct kernel_functions *kernel)
{
	int err = 0;

	for (size_t i = 0; kernel && i < kernel_functions_count(kernel) && !err; i++) {
		const struct kernel_function *f = kernel_functions_at(kernel, i);

		if (f->numbered)
			err = map_set_pointer(&r->kernel, f->number, (void *)f);
	}
	return err;
}

static int trace_run_begin(void *context, struct sampler *sampler, struct loop *loop)
{
	struct trace_run *r = context;
	int err;

	r->sampler = sampler;
	r->loop = loop;
	trace_output_init(&r->out, loop, r->plan->events ? r->events_fd : STDOUT_FILENO,
		trace_run_on_failed_output, r);
	err = trace_run_list_kernel(r, sampler_kernel_functions(sampler));
	if (!err)
		err = loop_timer(loop, TICK_NS, TICK_NS, trace_run_on_tick, r, &r->timer);
	if (err)
		return trace_run_fail("cannot start", err);
	return r->plan->events ? trace_run_frame(r, trace_events_begin) : 0;
}

/* Whether a function of --drilldown is traced. */
static bool trace_run_has_roots(const struct trace_run *r)
{
	const struct function_patterns *wanted = &r->plan->probing.wanted;
	const struct probed_files *files = sampler_probed_files(r->sampler);

	for (size_t i = r->plan->named; i < wanted->count; i++)
		if (probed_files_matches(files, i))
			return true;
	return false;
}

static bool trace_run_has_kernel_roots(const struct trace_run *r)
{
	const struct kernel_functions *kernel = sampler_kernel_functions(r->sampler);
	size_t count = r->plan->probing.kernel_wanted.count;

	for (size_t i = r->plan->kernel_named; kernel && i < count; i++)
		if (kernel_functions_matches(kernel, i))
			return true;
	return false;
}

/* Without the functions of --drilldown no tree would begin. */
static int trace_run_check_drilldown(const struct trace_run *r)
{
	bool user = trace_run_has_roots(r), kernel = trace_run_has_kernel_roots(r);
	bool both = r->plan->named && r->plan->kernel_named;

	if (!user && !kernel) {
		fprintf(stderr, "fathom trace: nothing can be traced below --drilldown\n");
		return -ENOENT;
	}
	if (both && !(user && kernel))
		fprintf(stderr,
			"fathom trace: --drilldown names no function of %s: their calls are not "
			"shown\n",
			user ? "-k" : "-u");
	return 0;
}

static int trace_run_probed(void *context)
{
	struct trace_run *r = context;
	const struct probed_files *files = sampler_probed_files(r->sampler);
	int err = trace_arguments_wait(&r->arguments);

	if (err)
		return trace_run_fail("cannot read the arguments", err);
	if (probed_files_waiting(files) || r->arguments.reading.first)
		return 0; /* interrupted */
	/* Its library may not be mapped yet. */
	trace_arguments_say_unused(&r->arguments, "is traced so far");
	return r->plan->drilldown.count ? trace_run_check_drilldown(r) : 0;
}

static void trace_run_count(struct trace_run *r, uint64_t duration_ns)
{
	struct trace_summary *summary = &r->summary;
	struct trace_counts counts;

	sampler_trace_counts(r->sampler, &counts);
	summary->duration_ns = duration_ns;
	summary->events_lost = counts.events_lost;
	summary->trees_left_out = counts.trees_left_out;
	summary->not_followed = counts.not_followed;
	summary->unmatched = counts.unmatched;
	summary->fiber_errors = counts.fiber_errors;
	summary->missed = counts.missed;
	summary->left_out += r->trees.not_kept;
}

static int trace_run_finish_trees(struct trace_run *r)
{
	int err;

	loop_cancel(r->loop, r->timer);
	trace_trees_finish(&r->trees);
	err = r->plan->events ? trace_run_frame(r, trace_events_end) : 0;
	(void)trace_output_finish(&r->out);
	return err ? err : r->error;
}

static int trace_run_summary(struct trace_run *r)
{
	autocall(buffer_deinit) struct buffer text = { 0 };
	int err;

	buffer_init(&text, MAX_TEXT_BYTES);
	err = r->plan->probing.json ? trace_json_summary(&r->summary, &r->names, &text)
				    : trace_summary_text(&r->summary, &r->names, &text);
	if (!err && r->plan->events)
		return output_file_write("-", &text);
	if (!err)
		(void)trace_output_add(&r->out, &text);
	(void)trace_output_finish(&r->out);
	return err;
}

static int trace_run_finish(void *context, uint64_t duration_ns)
{
	struct trace_run *r = context;
	int err = trace_run_finish_trees(r), summary;

	trace_arguments_say_unused(&r->arguments, "was traced");
	trace_run_count(r, duration_ns);
	summary = trace_run_summary(r);
	if (!err)
		err = summary;
	/* Who has read enough closes the pipe. */
	if (!err && (r->plan->events || r->out.error != -EPIPE))
		err = r->out.error;
	return err ? trace_run_fail(
			     r->plan->events ? r->plan->events : "cannot print the trace", err)
		   : 0;
}

static int trace_run_open(struct trace_run *r)
{
	if (!r->plan->events || r->plan->probing.dry_run)
		return 0;
	r->events_fd =
		open(r->plan->events, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0644);
	return r->events_fd < 0 ? -errno : 0;
}

static int trace_run_init(struct trace_run *r)
{
	r->color = isatty(STDOUT_FILENO);
	r->names = (struct trace_names){
		.function = trace_run_function,
		.has_parameters = trace_run_has_parameters,
		.place = trace_run_text,
		.process = trace_run_process,
		.values_text = trace_run_values_text,
		.values_json = trace_run_values_json,
		.has_values = trace_run_has_values,
		.context = r,
		.real_ns = clock_real_ns() - clock_monotonic_ns(),
	};
	map_init(&r->processes, MAX_PROCESSES);
	map_init(&r->kernel, ABI_LATENCY_FUNCTIONS);
	trace_trees_init(&r->trees, &(struct trace_trees_options){
					    .max_calls = MAX_CALLS,
					    .max_bytes = MAX_TREES_BYTES,
					    .min_duration_ns = r->plan->min_duration_ns,
					    .part_ns = MAX(PART_NS, r->plan->min_duration_ns),
					    .done = trace_run_on_tree,
					    .context = r,
				    });
	return trace_arguments_init(&r->arguments, &r->plan->rules)
		       ?: intern_init(&r->texts, MAX_PLACES, MAX_PLACES_BYTES);
}

int trace_run(const struct trace_plan *plan, int *ret_command_status)
{
	struct trace_run r = { .plan = plan, .timer = -1, .events_fd = -1 };
	const struct latency_calls calls = {
		.options = trace_run_options,
		.begin = trace_run_begin,
		.probed = trace_run_probed,
		.finish = trace_run_finish,
		.context = &r,
	};
	struct latency_plan probing = plan->probing;
	int err = trace_run_init(&r);

	probing.calls = &calls;
	if (err)
		err = trace_run_fail("cannot start", err);
	else if ((err = trace_run_open(&r)))
		err = trace_run_fail(plan->events, err);
	else
		err = latency_run(&probing, ret_command_status);
	if (r.events_fd >= 0)
		close(r.events_fd);
	trace_output_deinit(&r.out);
	trace_trees_deinit(&r.trees);
	trace_summary_deinit(&r.summary);
	trace_arguments_deinit(&r.arguments);
	map_deinit(&r.processes);
	map_deinit(&r.kernel);
	intern_deinit(&r.texts);
	return err;
}
