/* SPDX-License-Identifier: Apache-2.0 */
/* Go's row: goroutine ids. Go frames are native, so the index names them. */
#include "agent/sampler/runtimes/go/goids.h"
#include "agent/sampler/runtimes/runtime.h"
#include "base/log.h"

static bool go_detect(const struct index *index)
{
	struct index_go go;

	return index_go(index, &go);
}

static bool go_configure(const struct index *index, struct abi_runtime_process *ret_how)
{
	struct abi_runtime_process how = { .kind = ABI_RUNTIME_GO };
	struct index_go go;

	if (!index_go(index, &go) || !goids_how(&go, &how.go))
		return false;
	*ret_how = how;
	return true;
}

static void go_unsupported(const struct runtime_program *program, struct metrics *metrics)
{
	struct index_go go = { 0 };

	(void)index_go(program->index, &go);
	metrics_add(metrics, METRIC_GO_UNKNOWN_VERSION, 1);
	log_info("goroutine IDs of this Go program cannot be read", "pid=%u go=1.%u", program->pid,
		go.version);
}

static const struct runtime_fibers goroutines = {
	.one = "goroutine", .many = "goroutines", .id = "GOID"
};

const struct runtime runtime_go = {
	.detect = go_detect,
	.configure = go_configure,
	.unsupported = go_unsupported,
	.fibers = &goroutines,
};
