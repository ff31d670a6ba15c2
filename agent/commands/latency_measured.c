/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency_measured.h"

#include <errno.h>

#include "agent/sampler/sampler_latency.h"
#include "base/cgroup_path.h"
#include "base/cleanup.h"

enum { KEY_NAME_BYTES = 512 };

struct taking {
	struct sampler *sampler;
	const struct probed_files *files;
	struct latency_report *report;
	struct map numbers; /* of a probe → of the function in the report */
	struct map named; /* key → 1 */
	int err;
};

static void taking_deinit(struct taking *t)
{
	map_deinit(&t->numbers);
	map_deinit(&t->named);
}

static int take_function(struct taking *t, const struct probed_function *f)
{
	const struct probed_file file = probed_files_at(t->files, f->file);
	const struct latency *latency = sampler_latency(t->sampler);
	char build_id[2 * BUILD_ID_MAX_BYTES + 1];
	uint32_t number;
	int err;

	build_id_format(&file.build_id, build_id, sizeof(build_id));
	err = latency_report_function(t->report,
		&(struct latency_identity){
			.name = f->name,
			.linkage = f->linkage,
			.binary = file.path,
			.build_id = build_id,
			.address = f->address,
		},
		&number);
	if (err)
		return err;
	latency_report_factor(t->report, number, latency_factor(latency, f->probe));
	return map_set(&t->numbers, f->probe, number);
}

static int take_functions(struct taking *t)
{
	int err = 0;

	for (size_t i = 0; i < probed_functions_count(t->files) && !err; i++) {
		const struct probed_function *f = probed_functions_at(t->files, i);

		if (f->state == PROBED_FUNCTION_MEASURED)
			err = take_function(t, f);
	}
	return err;
}

static int take_kernel_function(struct taking *t, const struct kernel_function *f)
{
	uint32_t number;
	int err = latency_report_function(t->report,
		&(struct latency_identity){
			.name = f->name,
			.linkage = f->name,
			.binary = f->binary,
			.build_id = "",
		},
		&number);

	if (err)
		return err;
	latency_report_factor(
		t->report, number, latency_factor(sampler_latency(t->sampler), f->number));
	return map_set(&t->numbers, f->number, number);
}

static int take_kernel_functions(struct taking *t)
{
	const struct kernel_functions *kernel = sampler_kernel_functions(t->sampler);
	int err = 0;

	if (!kernel)
		return 0;
	t->report->kernel_way = kernel_functions_way(kernel);
	for (size_t i = 0; i < kernel_functions_count(kernel) && !err; i++) {
		const struct kernel_function *f = kernel_functions_at(kernel, i);

		if (!f->refusal)
			err = take_kernel_function(t, f);
	}
	return err;
}

/* A key without a name is shown as a number. */
static int name_key(struct taking *t, uint64_t key)
{
	char name[KEY_NAME_BYTES] = "";
	uint64_t known;

	if (!key || map_get(&t->named, key, &known))
		return 0;
	if (t->report->by == ABI_LATENCY_BY_PROCESS)
		sampler_latency_comm(t->sampler, (uint32_t)key, name, sizeof(name));
	else if (t->report->by == ABI_LATENCY_BY_CGROUP)
		(void)cgroup_path(key, name, sizeof(name));
	return *name ? latency_report_name_key(t->report, key, name) : map_set(&t->named, key, 1);
}

static void on_cell(void *context, const struct latency_cell *cell)
{
	struct taking *t = context;
	uint64_t number;

	if (t->err || !map_get(&t->numbers, cell->function, &number))
		return;
	t->err = latency_report_add(t->report, &(struct latency_report_cell){
						       .function = (uint32_t)number,
						       .bucket = cell->bucket,
						       .key = cell->by,
						       .calls = cell->count,
						       .total_ns = cell->sum_ns,
						       .max_ns = cell->max_ns,
					       });
	if (!t->err)
		t->err = name_key(t, cell->by);
}

static int take_counts(const struct taking *t)
{
	const struct kernel_functions *kernel = sampler_kernel_functions(t->sampler);
	struct latency_report *report = t->report;
	struct latency_counts counts;
	int err = latency_read_counts(sampler_latency(t->sampler), &counts);

	if (err)
		return err;
	report->lost[LATENCY_LOSS_not_returned] = counts.abandoned;
	report->lost[LATENCY_LOSS_no_entry] = counts.unmatched;
	report->lost[LATENCY_LOSS_open_full] = counts.open_full;
	report->lost[LATENCY_LOSS_evicted] = counts.evicted;
	report->lost[LATENCY_LOSS_histograms_full] = counts.cells_full;
	report->lost[LATENCY_LOSS_fiber_errors] = counts.fiber_errors;
	report->lost[LATENCY_LOSS_missed] =
		counts.missed + (kernel ? kernel_functions_missed(kernel) : 0);
	report->estimated = counts.unmeasured;
	report->hits = counts.hits;
	report->stacks = sampler_latency_stacks(t->sampler);
	report->stackless = counts.calls - MIN(counts.calls, report->stacks);
	/* A hit of a kernel function costs less: the sum would be wrong. */
	report->trap_ns = kernel ? 0 : latency_trap_ns(sampler_latency(t->sampler));
	return 0;
}

int latency_measured(struct sampler *sampler, struct latency_report *report)
{
	autocall(taking_deinit) struct taking t = {
		.sampler = sampler, .files = sampler_probed_files(sampler), .report = report
	};
	int err;

	map_init(&t.numbers, ABI_LATENCY_FUNCTIONS);
	map_init(&t.named, ABI_LATENCY_CELLS);
	err = take_functions(&t);
	if (!err)
		err = take_kernel_functions(&t);
	if (!err)
		err = latency_read(sampler_latency(sampler), on_cell, &t);
	if (!err)
		err = t.err;
	return err ? err : take_counts(&t);
}
