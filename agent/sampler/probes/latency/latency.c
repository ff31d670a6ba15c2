/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

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
		err = latency_find_map(object, "scratches", &l->counters_map);
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
	*ret_step = "tell probes apart (this needs Linux 5.15)";
	if (libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) != 1)
		return -EOPNOTSUPP;
	return 0;
}

/* The row's configure() has chosen one of the two programs. */
static int latency_find_program(struct latency *l, struct bpf_object *object, const char **ret_step)
{
	struct bpf_program *many = bpf_object__find_program_by_name(object, "latency_at_sites");
	struct bpf_program *one = bpf_object__find_program_by_name(object, "latency_at_site");

	if (!many || !one)
		return -EBADMSG;
	l->at_once = bpf_program__autoload(many);
	l->program = bpf_program__fd(l->at_once ? many : one);
	return l->at_once ? 0 : latency_find_event_type(l, ret_step);
}

static int latency_set_up(struct latency *l, struct bpf_object *object, const char **ret_step)
{
	struct latency_options *options = &l->options;
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
		err = latency_find_program(l, object, ret_step);
	if (err)
		return err;
	l->functions = calloc(options->max_functions, sizeof(*l->functions));
	return l->functions ? 0 : -ENOMEM;
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
	free(l->functions);
	free(l->free);
	free(l);
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
		.flags = function->flags & ABI_LATENCY_FIBER,
		.stack_check = function->stack_check,
		.restart_off = function->restart_off,
		.go = function->go,
	};
	added->thin_shift = added->largest_shift = 0;
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

static uint64_t latency_sum(
	const struct latency *l, const uint64_t *counters, enum abi_counter counter)
{
	uint64_t sum = 0;

	for (size_t cpu = 0; cpu < l->cpus; cpu++)
		sum += counters[cpu * ABI_COUNTERS + counter];
	return sum;
}

int latency_read_counts(const struct latency *l, struct latency_counts *ret_counts)
{
	autofree uint64_t *counters = calloc(l->cpus, ABI_COUNTERS * sizeof(*counters));
	uint32_t zero = 0;

	if (!counters)
		return -ENOMEM;
	if (bpf_map_lookup_elem(l->counters_map, &zero, counters))
		return -errno;
	*ret_counts = (struct latency_counts){
		.hits = latency_sum(l, counters, ABI_COUNT_RUNS),
		.bpf_ns = latency_sum(l, counters, ABI_COUNT_RUN_NS),
		.calls = latency_sum(l, counters, ABI_COUNT_CALLS),
		.unmeasured = latency_sum(l, counters, ABI_COUNT_CALLS_UNMEASURED),
		.open_full = latency_sum(l, counters, ABI_COUNT_CALLS_OPEN_FULL),
		.cells_full = latency_sum(l, counters, ABI_COUNT_CALLS_CELLS_FULL),
		.abandoned = l->swept + latency_sum(l, counters, ABI_COUNT_CALLS_ABANDONED),
		.evicted = l->evicted,
		.unmatched = latency_sum(l, counters, ABI_COUNT_RETURNS_UNMATCHED),
		.fiber_errors = latency_sum(l, counters, ABI_COUNT_CALLS_FIBER_ERROR),
	};
	return 0;
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
