/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The interface of a language runtime: a row of runtimes.def, implemented in a folder of its own.
 * All functions run in the privileged process: they read indexes, which are checked at each use,
 * and never a foreign file.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/runtimes/names.h"
#include "agent/sampler/seam/runtime_fibers.h"
#include "base/metrics.h"
#include "bpf/abi/frame.h"
#include "bpf/abi/sampler.h"
#include "symbolizer/index/index.h"

/* A process, as a runtime sees it. */
struct runtime_program {
	uint32_t pid;
	uint32_t generation; /* process generation; never 0 */
	const uint32_t *exec_id; /* of the program, as in samples; NULL = not known yet */
	const struct index *index; /* of the program's file, or of a library that it has mapped */
	bool is_library;
	const uint64_t *load_bias; /* of that file: pc minus ELF address; NULL = not known (yet) */
};

/* A frame of a runtime. A code object belongs to one generation of a process. */
struct runtime_frame {
	uint32_t pid;
	uint32_t generation; /* process generation; never 0 */
	struct abi_frame frame;
};

struct runtime {
	/* Whether the program of INDEX has this runtime. */
	bool (*detect)(const struct index *index);
	/*
	 * Sets the kind and facts by which BPF reads the runtime's state, in a process that has
	 * INDEX's file at LOAD_BIAS (NULL = not known). Returns -EAGAIN if that is needed,
	 * -EOPNOTSUPP if the facts are not known.
	 */
	int (*configure)(const struct index *index, const uint64_t *load_bias,
		struct abi_runtime_process *ret_how);
	/* Counts that PROGRAM has the runtime but cannot be configured; logs it once a file. */
	void (*unsupported)(
		void *state, const struct runtime_program *program, struct metrics *metrics);
	const struct runtime_fibers *fibers; /* NULL = it has none */
	/* The kinds of its frames (bpf/abi/frame.h); count 0 = it has only native frames. */
	uint32_t first_frame_kind, frame_kind_count;
	/*
	 * *RET_STATE is what the row keeps, of all processes; a row that keeps nothing has neither
	 * function, and its state is NULL.
	 */
	int (*create)(struct metrics *metrics, void **ret_state);
	void (*destroy)(void *state);
	/*
	 * The rest is NULL if it has only native frames.
	 *
	 * A sample of FRAME's process has it: reads what names() will need, while the process still
	 * has the code object. NULL = nothing is needed.
	 */
	void (*sampled)(void *state, const struct runtime_frame *frame);
	void (*names)(void *state, const struct runtime_frame *frame, struct runtime_names *names);
};

/*
 * What the runtime's functions mean (seam/runtime_functions.h). The lists end with NULL and hold
 * linkage names without SUFFIX, which symbols may have behind them (NULL = none).
 */
struct runtime_functions {
	const char *const *roots;
	const char *const *last; /* roots that hide frames beyond them */
	const char *const *own, *const *own_prefixes;
	const char *suffix;
	const char *fiber_end; /* NULL = it has no fibers */
	/* Fibers that collect garbage are created by these, or begin with them. */
	const char *const *collectors;
	const char *const *idle; /* a thread without a fiber sleeps in these */
};

#define RUNTIME(name)                               \
	extern const struct runtime runtime_##name; \
	extern const struct runtime_functions runtime_##name##_functions;
#include "agent/sampler/runtimes/runtimes.def"
#undef RUNTIME
