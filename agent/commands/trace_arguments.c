/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/trace_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/probed_files/probed_files.h"
#include "agent/sampler/sampler_latency.h"
#include "agent/sampler/sampler_trace.h"
#include "agent/settings/config.h"
#include "agent/trace_arguments/fetched.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/items.h"

enum { MAX_RULES = 256, MAX_FUNCTIONS = ABI_LATENCY_FUNCTIONS };

/* ---- the settings ---------------------------------------------------------------------------- */

static int trace_rules_add(struct trace_rules *rules, const char *text)
{
	struct fetch_rule_error error;
	int err = array_reserve(rules->items, rules->capacity, rules->count + 1, MAX_RULES);

	if (!err)
		err = fetch_rule_parse(text, &rules->items[rules->count], &error);
	if (err == -EINVAL)
		fprintf(stderr, "fathom trace: -a '%s': column %zu: %s\n", text, error.column,
			error.message);
	if (!err)
		rules->count++;
	return err;
}

int trace_rules_read(const struct config *config, struct trace_rules *ret_rules)
{
	const char *lines = config_text(config, SETTING_argument_rule);
	struct trace_rules rules = {
		.by_dwarf = config_flag(config, SETTING_arguments),
		.debug_directories = config_text(config, SETTING_debuginfo_directories),
	};
	int err = 0;

	while (!err && lines && *lines) {
		autofree char *line = strndup(lines, strcspn(lines, "\n"));

		err = line ? trace_rules_add(&rules, line) : -ENOMEM;
		lines += strcspn(lines, "\n");
		lines += *lines == '\n';
	}
	if (err) {
		trace_rules_deinit(&rules);
		return err;
	}
	*ret_rules = rules;
	return 0;
}

void trace_rules_deinit(struct trace_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		fetch_rule_deinit(&rules->items[i]);
	free(take(rules->items));
	rules->count = 0;
}

bool trace_rules_any(const struct trace_rules *rules)
{
	return rules->count || rules->by_dwarf;
}

static void trace_arguments_on_read(void *context, const struct trace_read *read);

/* ---- life ------------------------------------------------------------------------------------ */

int trace_arguments_init(struct trace_arguments *a, const struct trace_rules *rules)
{
	*a = (struct trace_arguments){ .rules = rules };
	map_init(&a->by_function, MAX_FUNCTIONS);
	a->reading.directories = rules->debug_directories;
	a->reading.done = trace_arguments_on_read;
	a->reading.context = a;
	a->used = calloc(rules->count + 1, sizeof(a->used[0]));
	return a->used ? 0 : -ENOMEM;
}

void trace_arguments_use_loop(struct trace_arguments *a, struct loop *loop)
{
	a->reading.loop = loop;
}

void trace_arguments_deinit(struct trace_arguments *a)
{
	trace_reading_deinit(&a->reading);
	for (size_t i = 0; i < a->count; i++)
		function_arguments_deinit(&a->items[i]);
	free(take(a->items));
	free(take(a->used));
	a->count = 0;
	map_deinit(&a->by_function);
}

/* ---- functions ------------------------------------------------------------------------------- */

static struct argument_plan *trace_arguments_copy(const struct argument_plan *plan)
{
	struct argument_plan *copy = malloc(argument_plan_size(plan));

	return copy ? memcpy(copy, plan, argument_plan_size(plan)) : NULL;
}

/* The rule for FUNCTION; NULL = none. */
static const struct fetch_rule *trace_arguments_rule(
	const struct trace_arguments *a, const struct probed_function *function)
{
	for (size_t i = 0; i < a->rules->count; i++) {
		const struct fetch_rule *rule = &a->rules->items[i];

		if (!strcmp(rule->function, function->name) ||
			!strcmp(rule->function, function->linkage)) {
			a->used[i] = true;
			return rule;
		}
	}
	return NULL;
}

/* Keeps FOUND, which is taken, for FUNCTION, and has it fetched. */
static int trace_arguments_keep(struct trace_arguments *a, struct sampler *sampler,
	const struct probed_function *function, struct function_arguments *found)
{
	int err = array_reserve(a->items, a->capacity, a->count + 1, MAX_FUNCTIONS);

	if (!err)
		err = sampler_trace_fetch(sampler, function->probe, found->entry, found->results);
	if (!err)
		err = map_set(&a->by_function, function->probe, a->count + 1);
	if (err)
		return err;
	a->items[a->count++] = *found;
	*found = (struct function_arguments){ 0 };
	return 0;
}

static void trace_arguments_say(const char *path, int err)
{
	const char *reason = strerror(-err);

	if (err == -ENOENT)
		reason = "it has no debug information";
	if (err == -EOPNOTSUPP)
		reason = "part of its debug information was not found";
	fprintf(stderr, "fathom trace: no arguments of functions of %s: %s\n", path, reason);
}

/* Some functions have no arguments because their debug information is elsewhere. */
static void trace_arguments_say_split(const struct trace_read *read)
{
	size_t count = 0;

	for (size_t i = 0; i < read->entry_count; i++)
		count += read->items[i].split;
	if (count)
		fprintf(stderr,
			"fathom trace: no arguments of %zu function%s of %s: debug information in "
			".dwo files is not read for arguments\n",
			count, count == 1 ? "" : "s", read->path);
}

static void trace_arguments_choose(struct trace_arguments *a, struct sampler *sampler,
	const struct probed_function *function, struct function_arguments *by_dwarf)
{
	const struct fetch_rule *rule = trace_arguments_rule(a, function);
	struct function_arguments found = { 0 };

	if (by_dwarf) {
		found = *by_dwarf;
		*by_dwarf = (struct function_arguments){ 0 };
	}
	if (rule) {
		free(found.entry);
		found.entry = trace_arguments_copy(rule->plan);
	}
	if ((found.entry || found.results) && trace_arguments_keep(a, sampler, function, &found))
		a->not_fetched++;
	function_arguments_deinit(&found);
}

/* FUNCTION's debug information has been read, or will not be. */
static void trace_arguments_settle(struct trace_arguments *a, uint32_t function)
{
	uint64_t number;

	if (map_get(&a->by_function, function, &number) && !number)
		map_remove(&a->by_function, function);
}

static void trace_arguments_on_read(void *context, const struct trace_read *read)
{
	struct trace_arguments *a = context;
	const struct probed_files *files = sampler_probed_files(a->sampler);

	if (read->error)
		trace_arguments_say(read->path, read->error);
	trace_arguments_say_split(read);
	for (size_t i = 0; i < read->count; i++) {
		const struct traced_function *f = &read->functions[i];
		const struct probed_function *function =
			probed_functions_of_probe(files, f->number);

		trace_arguments_settle(a, f->number);
		/* The file may have changed meanwhile, and be detached. */
		if (function && function->address == f->address)
			trace_arguments_choose(
				a, a->sampler, function, trace_read_item(read, f->address));
	}
}

/*
 * Has the debug information of functions read, whose calls lack their arguments until then; or
 * finds at once what was kept of it.
 */
static int trace_arguments_read(struct trace_arguments *a, const struct trace_reading_file *file,
	const struct probed_function *functions, size_t count)
{
	autofree struct traced_function *traced = calloc(count + 1, sizeof(traced[0]));
	size_t traced_count = 0;
	int err;

	if (!traced)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (functions[i].state == PROBED_FUNCTION_MEASURED)
			traced[traced_count++] = (struct traced_function){
				.number = functions[i].probe,
				.address = functions[i].address,
			};
	if (!traced_count)
		return 0;
	for (size_t i = 0; i < traced_count; i++)
		(void)map_set(&a->by_function, traced[i].number, 0);
	err = trace_reading_add(&a->reading, file, traced, traced_count);
	for (size_t i = 0; err && i < traced_count; i++)
		trace_arguments_settle(a, traced[i].number);
	return err;
}

void trace_arguments_chosen(struct trace_arguments *a, struct sampler *sampler,
	const struct probed_chosen *file, const struct probed_function *functions, size_t count)
{
	const struct trace_reading_file read = {
		.path = file->path,
		.fd = file->fd,
		.root_fd = file->root_fd,
		.id = file->id,
		.cache = sampler_trace_cache(sampler),
	};
	int err = -ENOENT;

	a->sampler = sampler;
	if (a->rules->by_dwarf) {
		err = trace_arguments_read(a, &read, functions, count);
		if (err)
			trace_arguments_say(file->path, err);
	}
	for (size_t i = 0; err && i < count; i++)
		if (functions[i].state == PROBED_FUNCTION_MEASURED)
			trace_arguments_choose(a, sampler, &functions[i], NULL);
}

int trace_arguments_wait(struct trace_arguments *a)
{
	return trace_reading_wait(&a->reading);
}

void trace_arguments_say_unused(const struct trace_arguments *a, const char *when)
{
	for (size_t i = 0; i < a->rules->count; i++)
		if (!a->used[i])
			fprintf(stderr, "fathom trace: -a: no function %s %s\n",
				a->rules->items[i].function, when);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The plan by which PAYLOAD was fetched, whose values go to RET_FETCHED; NULL = none. */
static const struct argument_plan *trace_arguments_plan(const struct trace_arguments *a,
	uint32_t function, bool results, const void *payload, size_t size,
	struct abi_fetched *ret_fetched)
{
	const struct function_arguments *item;
	const struct argument_plan *plan;
	uint64_t number;

	if (!map_get(&a->by_function, function, &number) || !number || size > sizeof(*ret_fetched))
		return NULL;
	item = &a->items[number - 1];
	plan = results ? item->results : item->entry;
	/* A payload that is shorter would show zeros for what is not in it. */
	if (!plan || size != ABI_FETCHES + plan->fetched_bytes)
		return NULL;
	*ret_fetched = (struct abi_fetched){ 0 };
	memcpy(ret_fetched, payload, size);
	return plan;
}

bool trace_arguments_has_values(const struct trace_arguments *a, uint32_t function)
{
	const struct argument_plan *plan;
	uint64_t number;

	if (!map_get(&a->by_function, function, &number))
		return false;
	plan = number ? a->items[number - 1].entry : NULL;
	return !number || (plan && plan->count);
}

void trace_arguments_text(const struct trace_arguments *a, uint32_t function, bool results,
	const void *payload, size_t size, struct buffer *out)
{
	struct abi_fetched fetched;
	const struct argument_plan *plan =
		trace_arguments_plan(a, function, results, payload, size, &fetched);

	(void)fetched_text(plan, &fetched, out);
}

void trace_arguments_json(const struct trace_arguments *a, uint32_t function, bool results,
	const void *payload, size_t size, struct json *j)
{
	struct abi_fetched fetched;
	const struct argument_plan *plan =
		trace_arguments_plan(a, function, results, payload, size, &fetched);

	fetched_json(plan, &fetched, j, results ? "results" : "arguments");
}
