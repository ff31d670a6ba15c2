/* SPDX-License-Identifier: Apache-2.0 */
/* Go's row: goroutine ids. Go frames are native, so the index names them. */
#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/runtimes/go/goids.h"
#include "agent/sampler/runtimes/go/waits.h"
#include "agent/sampler/runtimes/runtime.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/map.h"

enum { REPORTED_LIMIT = 1024 };

struct go_state {
	struct map reported; /* files that cannot be read and were logged: hash → 1 */
};

static int go_create(struct metrics *metrics, void **ret_state)
{
	struct go_state *state = calloc(1, sizeof(*state));

	(void)metrics;
	if (!state)
		return -ENOMEM;
	map_init(&state->reported, REPORTED_LIMIT);
	*ret_state = state;
	return 0;
}

static void go_destroy(void *of)
{
	struct go_state *state = of;

	map_deinit(&state->reported);
	free(state);
}

static bool go_detect(const struct index *index)
{
	struct index_go go;

	return index_go(index, &go);
}

static int go_configure(
	const struct index *index, const uint64_t *load_bias, struct abi_runtime_process *ret_how)
{
	struct abi_runtime_process how = { .kind = ABI_RUNTIME_GO };
	struct index_go go;
	int err = index_go(index, &go) ? goids_how(&go, load_bias, &how.go) : -EOPNOTSUPP;

	if (!err)
		*ret_how = how;
	return err;
}

/* REFUSAL is from an index, which may say anything. */
static const char *go_refusal(uint32_t refusal)
{
	switch (refusal) {
	case INDEX_GO_NEW_VERSION:
		return "its release is newer than those that fathom knows";
	case INDEX_GO_CONTRADICTION:
		return "its DWARF contradicts what is known of its release";
	case INDEX_GO_NO_TLS:
		return "where it keeps the running goroutine was not found";
	default:
		return "its version is not known";
	}
}

/* Whether the file of INDEX was not reported yet; beyond a limit no file is reported. */
static bool go_is_first(struct go_state *state, const struct index *index)
{
	const struct file_hash *file = index_file_hash(index);
	uint64_t key = hash_bytes(file->bytes, sizeof(file->bytes)), one;

	return !map_get(&state->reported, key, &one) && !map_set(&state->reported, key, 1);
}

static void go_unsupported(
	void *state, const struct runtime_program *program, struct metrics *metrics)
{
	struct index_go go = { 0 };

	(void)index_go(program->index, &go);
	metrics_add(metrics, METRIC_GO_UNKNOWN_VERSION, 1);
	if (go_is_first(state, program->index))
		log_warn("goroutines of a Go program cannot be read",
			"pid=%u go=1.%u reason=\"%s\"", program->pid, go.version,
			go_refusal(go.refusal));
}

static const struct runtime_fibers goroutines = {
	.one = "goroutine",
	.many = "goroutines",
	.id = "GOID",
	.states = {
		[ABI_FIBER_RUNS] = "user",
		[ABI_FIBER_ON_THREAD_STACK] = "g0",
		[ABI_FIBER_ON_SIGNAL_STACK] = "signal",
		[ABI_FIBER_NONE] = "scheduler",
	},
	.collects = "gc_worker",
	.idle = "idle",
	.wait = go_wait_text,
};

const struct runtime runtime_go = {
	.detect = go_detect,
	.configure = go_configure,
	.unsupported = go_unsupported,
	.create = go_create,
	.destroy = go_destroy,
	.fibers = &goroutines,
};
