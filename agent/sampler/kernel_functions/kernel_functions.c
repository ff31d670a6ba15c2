/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/kernel_functions/kernel_functions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/sampler/functions/glob.h"
#include "base/cleanup.h"

struct kernel_functions {
	struct kernel_functions_options options;
	struct kernel_choice choice;
	struct kernel_attached *attached; /* NULL = none */
	const char *way; /* "" = never attached */
	uint64_t missed; /* when they were detached */
	pid_t closer; /* a child that detaches them; 0 = none, or gone */
	char problem[KERNEL_PROBLEM_BYTES]; /* "" = none */
};

/* What is to be attached, and whose target it is. */
struct kernel_targets {
	struct kernel_target *items;
	size_t *functions; /* in the choice */
	size_t count;
};

static void kernel_targets_deinit(struct kernel_targets *t)
{
	free(t->items);
	free(t->functions);
}

/* ---- choosing ------------------------------------------------------------------------------- */

static int kernel_functions_explain_choice(struct kernel_functions *k, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err == -EACCES || err == -EPERM)
		snprintf(k->problem, sizeof(k->problem),
			"the kernel hides its addresses (root, or CAP_SYSLOG, and "
			"kernel.kptr_restrict below 2)");
	else if (err == -E2BIG)
		snprintf(k->problem, sizeof(k->problem), "its lists of functions are too long");
	else
		snprintf(k->problem, sizeof(k->problem), "/proc/kallsyms: %s", strerror(-err));
	return 0;
}

static void kernel_functions_check_choice(struct kernel_functions *k)
{
	if (k->choice.probeable > k->options.max_functions)
		snprintf(k->problem, sizeof(k->problem),
			"the patterns name %zu functions, %zu are possible at once; a narrower "
			"pattern or --exclude helps",
			k->choice.probeable, k->options.max_functions);
}

static int kernel_functions_choose(struct kernel_functions *k)
{
	autocall(kernel_lists_deinit) struct kernel_lists lists = { 0 };
	const struct kernel_choice_options options = {
		.wanted = k->options.wanted,
		.unwanted = k->options.unwanted,
		.limit = k->options.max_functions,
	};
	int err = kernel_lists_read(&lists);

	if (!err)
		err = kernel_choice_make(&lists, &options, &k->choice);
	if (err)
		return kernel_functions_explain_choice(k, err);
	kernel_functions_check_choice(k);
	return 0;
}

/* ---- attaching ------------------------------------------------------------------------------ */

static void kernel_functions_refuse(struct kernel_function *f, int err)
{
	f->refusal = KERNEL_NOT_ATTACHED;
	f->err = err;
}

static bool kernel_functions_are_roots(
	const struct kernel_functions *k, const struct kernel_function *f)
{
	const struct function_patterns *roots = k->options.roots;

	for (size_t i = 0; roots && i < roots->count; i++)
		if (!roots->items[i].binary &&
			glob_matches(roots->items[i].glob, f->name, strlen(f->name)))
			return true;
	return false;
}

/* Gives the functions that can be measured their numbers. */
static int kernel_functions_number(struct kernel_functions *k, struct kernel_targets *targets)
{
	struct abi_latency_function plain = {
		.stack_check = ABI_LATENCY_NO_STACK_CHECK,
		.by = k->options.by,
		.set = k->options.set,
	};
	int err = 0;

	targets->items = calloc(k->choice.count + 1, sizeof(*targets->items));
	targets->functions = calloc(k->choice.count + 1, sizeof(*targets->functions));
	if (!targets->items || !targets->functions)
		return -ENOMEM;
	for (size_t i = 0; i < k->choice.count && !err; i++) {
		struct kernel_function *f = &k->choice.functions[i];

		if (f->refusal)
			continue;
		plain.kaddr = f->address_count == 1 ? f->addresses[0] : 0;
		plain.flags = kernel_functions_are_roots(k, f) ? ABI_LATENCY_ROOT : 0;
		err = latency_functions_add(k->options.latency, &plain, &f->number);
		if (err)
			break;
		f->numbered = true;
		targets->functions[targets->count] = i;
		targets->items[targets->count++] = (struct kernel_target){
			.name = f->name,
			.in_module = *f->binary == '[',
			.addresses = f->addresses,
			.address_count = f->address_count,
			.function = f->number,
		};
	}
	return err;
}

/* Calls FN with the numbers of all functions. */
static int kernel_functions_each_number(struct kernel_functions *k,
	void (*fn)(struct latency *l, const uint32_t *numbers, size_t count))
{
	autofree uint32_t *numbers = calloc(k->choice.count + 1, sizeof(*numbers));
	size_t count = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < k->choice.count; i++)
		if (k->choice.functions[i].numbered)
			numbers[count++] = k->choice.functions[i].number;
	if (count)
		fn(k->options.latency, numbers, count);
	return 0;
}

static int kernel_functions_take_back(struct kernel_functions *k)
{
	int err = kernel_functions_each_number(k, latency_functions_remove);

	for (size_t i = 0; i < k->choice.count && !err; i++)
		k->choice.functions[i].numbered = false;
	return err;
}

/* A name of which only some addresses could be attached would have too few calls. */
static void kernel_functions_note_refused(
	struct kernel_functions *k, const struct kernel_targets *targets)
{
	size_t count;
	const struct kernel_refused *refused = kernel_latency_refused(k->attached, &count);

	for (size_t i = 0; i < count; i++)
		kernel_functions_refuse(&k->choice.functions[targets->functions[refused[i].number]],
			refused[i].err);
}

static int kernel_functions_attach_targets(
	struct kernel_functions *k, const struct kernel_targets *targets)
{
	int err;

	if (!targets->count)
		return 0;
	err = kernel_latency_attach(k->options.kernel_latency, targets->items, targets->count,
		&k->attached, k->problem);
	if (err == -ENOMEM)
		return err;
	/* The run ends before anything is said of them. */
	if (err == -EINTR) {
		*k->problem = 0;
		return 0;
	}
	if (err && !*k->problem)
		snprintf(k->problem, sizeof(k->problem), "%s", strerror(-err));
	if (err)
		return 0;
	k->way = kernel_way_name(kernel_latency_way(k->attached));
	kernel_functions_note_refused(k, targets);
	return 0;
}

static int kernel_functions_attach(struct kernel_functions *k)
{
	autocall(kernel_targets_deinit) struct kernel_targets targets = { 0 };
	int err = kernel_functions_number(k, &targets);

	if (err == -E2BIG)
		snprintf(k->problem, sizeof(k->problem),
			"with the user functions there are more than %zu",
			k->options.max_functions);
	else if (!err)
		err = kernel_functions_attach_targets(k, &targets);
	if (err == -E2BIG)
		err = 0;
	return !err && *k->problem ? kernel_functions_take_back(k) : err;
}

/* A dry run says as much as a run would. */
static void kernel_functions_try(struct kernel_functions *k)
{
	for (enum kernel_way way = 0; way < KERNEL_WAYS; way++)
		if (!kernel_way_try(way, k->options.without))
			return;
	kernel_ways_explain(k->options.without, k->problem);
}

/* ---- life ----------------------------------------------------------------------------------- */

int kernel_functions_create(
	const struct kernel_functions_options *options, struct kernel_functions **ret_functions)
{
	struct kernel_functions *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return -ENOMEM;
	k->options = *options;
	k->way = "";
	err = kernel_functions_choose(k);
	if (!err && !*k->problem && options->latency)
		err = kernel_functions_attach(k);
	else if (!err && !*k->problem)
		kernel_functions_try(k);
	if (err)
		kernel_functions_destroy(k);
	else
		*ret_functions = k;
	return err;
}

void kernel_functions_destroy(struct kernel_functions *k)
{
	if (!k)
		return;
	kernel_latency_detach(k->attached);
	if (k->options.shares)
		(void)kernel_functions_take_back(k);
	kernel_choice_deinit(&k->choice);
	free(k);
}

void kernel_functions_detach(struct kernel_functions *k)
{
	if (k->attached)
		k->missed = kernel_functions_missed(k);
	kernel_latency_detach(take(k->attached));
}

void kernel_functions_end(struct kernel_functions *k)
{
	if (!k->attached)
		return;
	(void)kernel_functions_each_number(k, latency_functions_end);
	k->missed = kernel_functions_missed(k);
	k->closer = kernel_latency_detach_begin(take(k->attached));
}

bool kernel_functions_is_busy(struct kernel_functions *k)
{
	if (k->closer && waitpid(k->closer, NULL, WNOHANG) != 0)
		k->closer = 0;
	return k->closer != 0;
}

/* ---- what became of them -------------------------------------------------------------------- */

const char *kernel_functions_problem(const struct kernel_functions *k)
{
	return *k->problem ? k->problem : NULL;
}

bool kernel_functions_were_chosen(const struct kernel_functions *k)
{
	return k->choice.matches != NULL;
}

size_t kernel_functions_count(const struct kernel_functions *k)
{
	return k->choice.count;
}

const struct kernel_function *kernel_functions_at(const struct kernel_functions *k, size_t number)
{
	return &k->choice.functions[number];
}

size_t kernel_functions_excluded(const struct kernel_functions *k)
{
	return k->choice.excluded;
}

size_t kernel_functions_matches(const struct kernel_functions *k, size_t pattern)
{
	return k->choice.matches[pattern];
}

const char *kernel_functions_way(const struct kernel_functions *k)
{
	return k->way;
}

uint64_t kernel_functions_missed(const struct kernel_functions *k)
{
	if (!k->attached)
		return k->missed;
	return kernel_latency_missed(k->attached) +
	       (k->options.shares ? 0 : kernel_latency_missed_by_shared(k->options.kernel_latency));
}
