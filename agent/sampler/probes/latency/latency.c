/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/object_constants.h"
#include "agent/sampler/collect/process_uprobes.h"
#include "agent/sampler/collect/uprobe_multi.h"
#include "agent/sampler/probes/latency/latency_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "bpf/abi/sampler.h"

static const char UPROBE_PMU[] = "/sys/bus/event_source/devices/uprobe/type";

static const uint64_t SECOND_NS = 1000000000;

/* ---- life ----------------------------------------------------------------------------------- */

static int latency_find_map(struct bpf_object *object, const char *name, int *ret_fd)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);

	if (fd < 0)
		return -EBADMSG;
	*ret_fd = fd;
	return 0;
}

static int latency_find_maps(struct latency *l, struct bpf_object *object)
{
	int err = latency_find_map(object, "latency_functions", &l->functions_map);

	if (!err)
		err = latency_find_map(object, "latency_entries", &l->entries_map);
	if (!err)
		err = latency_find_map(object, "latency_open", &l->open_map);
	if (!err)
		err = latency_find_map(object, "latency_cells", &l->cells_map);
	if (!err)
		err = latency_find_map(object, "latency_processes", &l->processes_map);
	if (!err)
		err = object_counters_init(&l->counters, object);
	return err;
}

/* The number that perf events at user functions have as their type. */
static int latency_find_event_type(struct latency *l, const char **ret_step)
{
	char line[32];
	char *end;

	*ret_step = "attach to user functions (this kernel has no uprobes: CONFIG_UPROBE_EVENTS)";
	if (io_read_line(AT_FDCWD, UPROBE_PMU, line, sizeof(line)) < 0)
		return -EOPNOTSUPP;
	l->event_type = (int)strtoul(line, &end, 10);
	if (end == line)
		return -EOPNOTSUPP;
	return 0;
}

/* What the row's configure() has found. */
static int latency_read_config(struct latency *l, const struct bpf_object *object)
{
	const struct abi_latency_config *config =
		object_constants(object, ".rodata.probe", sizeof(*config));

	if (!config)
		return -EBADMSG;
	l->cookie_in_path = config->cookie_in_path;
	return 0;
}

/* The row has chosen one of the programs. */
static int latency_find_program(struct latency *l, struct bpf_object *object, const char **ret_step)
{
	struct bpf_program *program, *loaded = NULL;

	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__autoload(program))
			loaded = program;
	}
	if (l->options.kernel_only)
		return 0;
	if (!loaded)
		return -EBADMSG;
	l->at_once = bpf_program__expected_attach_type(loaded) ==
		     (enum bpf_attach_type)UPROBE_MULTI_TYPE;
	l->program = bpf_program__fd(loaded);
	return l->at_once ? 0 : latency_find_event_type(l, ret_step);
}

static int latency_set_up(struct latency *l, struct bpf_object *object, const char **ret_step)
{
	struct latency_options *options = &l->options;
	struct sites_program program;
	int cpus = libbpf_num_possible_cpus();
	int err;

	if (cpus < 0)
		return cpus;
	l->cpus = (size_t)cpus;
	if (!options->max_functions)
		options->max_functions = ABI_LATENCY_FUNCTIONS;
	if (!options->max_open_calls)
		options->max_open_calls = ABI_LATENCY_OPEN_CALLS;
	err = latency_find_maps(l, object);
	if (!err)
		err = latency_read_config(l, object);
	if (!err)
		err = latency_find_program(l, object, ret_step);
	if (err)
		return err;
	l->functions = calloc(options->max_functions, sizeof(*l->functions));
	if (!l->functions)
		return -ENOMEM;
	/* The number of no function. */
	if (options->only_tgid && l->at_once && !process_uprobes_probe())
		l->only_tgid = options->only_tgid;
	program = latency_sites_program(l);
	trap_cost_begin(l->trap, &program, ABI_LATENCY_FUNCTIONS);
	return 0;
}

int latency_create(struct bpf_object *object, const struct latency_options *options,
	struct latency **ret_latency, const char **ret_step)
{
	struct latency *l = calloc(1, sizeof(*l));
	int err;

	*ret_step = "prepare the probes of functions";
	if (!l)
		return -ENOMEM;
	l->options = *options;
	l->trap = malloc(sizeof(*l->trap));
	if (!l->trap) {
		latency_destroy(l);
		return -ENOMEM;
	}
	*l->trap = (struct trap_cost){ .answer = -1 };
	err = latency_set_up(l, object, ret_step);
	if (err) {
		latency_destroy(l);
		return err;
	}
	*ret_latency = l;
	return 0;
}

void latency_destroy(struct latency *l)
{
	if (!l)
		return;
	if (l->trap)
		trap_cost_deinit(l->trap);
	free(l->trap);
	object_counters_deinit(&l->counters);
	free(l->functions);
	free(l->free);
	free(l);
}

bool latency_is_of_one_process(const struct latency *l)
{
	return l->only_tgid != 0;
}

bool latency_attaches_at_once(const struct latency *l)
{
	return l->at_once;
}

/* ---- functions ------------------------------------------------------------------------------ */

int latency_function_write(struct latency *l, uint32_t number)
{
	return bpf_map_update_elem(l->functions_map, &number, &l->functions[number].abi, BPF_ANY)
		       ? -errno
		       : 0;
}

/* A number that is not in use. Making it free again must not fail, so there is room for that. */
static int latency_new_number(struct latency *l, uint32_t *ret_number)
{
	int err;

	if (l->free_count) {
		*ret_number = l->free[l->free_count - 1];
		return 0;
	}
	if (l->count == l->options.max_functions)
		return -E2BIG;
	err = array_reserve(l->free, l->free_capacity, l->count + 1, l->options.max_functions);
	if (!err)
		*ret_number = l->count;
	return err;
}

int latency_functions_add(
	struct latency *l, const struct abi_latency_function *function, uint32_t *ret_number)
{
	struct latency_function *added;
	uint32_t number;
	int err = latency_new_number(l, &number);

	if (err)
		return err;
	added = &l->functions[number];
	added->abi = (struct abi_latency_function){
		.flags = function->flags & (ABI_LATENCY_FIBER | ABI_LATENCY_ROOT |
						   ABI_LATENCY_FIBER_END | ABI_LATENCY_AGAIN_SITE),
		.stack_check = function->stack_check,
		.restart_off = function->restart_off,
		.by = function->by ? function->by : (uint32_t)l->options.by,
		.set = function->set,
		.go = function->go,
		.kaddr = function->kaddr,
	};
	added->thin_shift = added->largest_shift = 0;
	added->ended = false;
	err = latency_function_write(l, number);
	if (err)
		return err;
	added->used = true;
	if (number == l->count)
		l->count++;
	else
		l->free_count--;
	*ret_number = number;
	return 0;
}

void latency_functions_remove(struct latency *l, const uint32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert(numbers[i] < l->count && l->functions[numbers[i]].used);
		l->functions[numbers[i]].used = false;
	}
	/* A number that still has cells is not used again. */
	if (latency_forget_unused(l))
		return;
	for (size_t i = 0; i < count; i++)
		l->free[l->free_count++] = numbers[i];
}

void latency_functions_end(struct latency *l, const uint32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct latency_function *function = &l->functions[numbers[i]];

		assert(numbers[i] < l->count && function->used);
		function->ended = true;
		function->abi.flags |= ABI_LATENCY_ENDED;
		(void)latency_function_write(l, numbers[i]);
	}
}

void latency_end(struct latency *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->functions[i].used)
			latency_functions_end(l, &i, 1);
}

/* ---- processes ------------------------------------------------------------------------------ */

int latency_set_process(struct latency *l, uint32_t tgid, uint64_t sets, uint32_t number)
{
	const struct abi_latency_process process = { .sets = sets, .number = number };

	return bpf_map_update_elem(l->processes_map, &tgid, &process, BPF_ANY) ? -errno : 0;
}

void latency_forget_process(struct latency *l, uint32_t tgid)
{
	(void)bpf_map_delete_elem(l->processes_map, &tgid);
}

/* ---- shares --------------------------------------------------------------------------------- */

/* Without a limit nobody looks at the entries: rates begin now. */
static void latency_begin_rates(struct latency *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct abi_latency_entries entries;

		if (l->functions[i].used && !latency_read_entries(l, i, &entries))
			l->functions[i].entries = entries.calls;
	}
}

void latency_limit_calls(struct latency *l, uint64_t per_second)
{
	if (per_second && !l->options.max_calls_per_second)
		latency_begin_rates(l);
	l->options.max_calls_per_second = per_second;
}

uint32_t latency_factor(const struct latency *l, uint32_t function)
{
	assert(function < l->count);
	return UINT32_C(1) << l->functions[function].thin_shift;
}

uint32_t latency_largest_factor(const struct latency *l)
{
	uint32_t largest = 0;

	for (uint32_t i = 0; i < l->count; i++)
		largest = MAX(largest, l->functions[i].largest_shift);
	return UINT32_C(1) << largest;
}

/* ---- what is counted ------------------------------------------------------------------------ */

int latency_read_entries(
	const struct latency *l, uint32_t number, struct abi_latency_entries *ret_entries)
{
	autofree struct abi_latency_entries *of_cpus = calloc(l->cpus, sizeof(*of_cpus));
	struct abi_latency_entries sum = { 0 };

	if (!of_cpus)
		return -ENOMEM;
	if (bpf_map_lookup_elem(l->entries_map, &number, of_cpus))
		return -errno;
	for (size_t cpu = 0; cpu < l->cpus; cpu++) {
		sum.calls += of_cpus[cpu].calls;
		sum.hits += of_cpus[cpu].hits;
	}
	*ret_entries = sum;
	return 0;
}

uint64_t latency_function_hits(const struct latency *l, uint32_t function)
{
	struct abi_latency_entries entries;

	return latency_read_entries(l, function, &entries) ? 0 : entries.hits;
}

int latency_read_counts(const struct latency *l, struct latency_counts *ret_counts)
{
	uint64_t sums[ABI_COUNTERS] = { 0 };
	int err = object_counters_add(&l->counters, sums);

	if (err)
		return err;
	*ret_counts = (struct latency_counts){
		.hits = sums[ABI_COUNT_RUNS],
		.kernel_hits = sums[ABI_COUNT_KERNEL_HITS],
		.bpf_ns = sums[ABI_COUNT_RUN_NS],
		.calls = sums[ABI_COUNT_CALLS],
		.unmeasured = sums[ABI_COUNT_CALLS_UNMEASURED],
		.open_full = sums[ABI_COUNT_CALLS_OPEN_FULL],
		.cells_full = sums[ABI_COUNT_CALLS_CELLS_FULL],
		.abandoned = l->swept + sums[ABI_COUNT_CALLS_ABANDONED],
		.evicted = l->evicted,
		.unmatched = sums[ABI_COUNT_RETURNS_UNMATCHED],
		.fiber_errors = sums[ABI_COUNT_CALLS_FIBER_ERROR],
		.stacks = sums[ABI_COUNT_CALLS_STACKS],
		.stacks_busy = sums[ABI_COUNT_CALLS_STACK_BUSY],
		.stacks_ns = sums[ABI_COUNT_STACKS_NS],
		.kernel_stack_errors = sums[ABI_COUNT_CALLS_KERNEL_STACK_ERROR],
		.missed = sums[ABI_COUNT_CALLS_MISSED],
	};
	return 0;
}

uint64_t latency_trap_ns(const struct latency *l)
{
	return trap_cost_ns(l->trap);
}

void latency_tick(struct latency *l, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - l->ticked_ns;

	if (l->ticked_ns && passed_ns >= SECOND_NS / 2)
		latency_thin(l, passed_ns);
	if (!l->ticked_ns || passed_ns >= SECOND_NS / 2)
		l->ticked_ns = now_ns;
	latency_sweep(l);
}
