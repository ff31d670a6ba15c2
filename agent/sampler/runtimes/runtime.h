/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a language runtime is to the sampler: a row of runtimes.def, in a folder of its own. All
 * functions run in the privileged process: they read indexes, which are checked at each use, and
 * never a foreign file.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/runtimes/names.h"
#include "base/metrics.h"
#include "bpf/abi/frame.h"
#include "bpf/abi/sampler.h"
#include "symbolizer/index/index.h"

/* A process, as a runtime knows it. */
struct runtime_program {
	uint32_t pid;
	uint32_t generation; /* process generation; never 0 */
	const uint32_t *exec_id; /* of the program, as in samples; NULL = not known yet */
	const struct index *index; /* of the program's file */
};

struct runtime {
	/* Whether the program of INDEX has this runtime. */
	bool (*detect)(const struct index *index);
	/* Sets the kind and its facts, by which BPF reads the runtime's state. False: not known. */
	bool (*configure)(const struct index *index, struct abi_runtime_process *ret_how);
	/* PROGRAM has the runtime and cannot be configured: counts and logs it. */
	void (*unsupported)(const struct runtime_program *program, struct metrics *metrics);
	/* Kinds of frames it brings (bpf/abi/frame.h): COUNT from FIRST on; 0 = native ones only.
	 */
	uint32_t first_frame_kind, frame_kind_count;
	/* Names FRAME of generation GENERATION. NULL where it brings none. */
	void (*names)(uint32_t pid, uint32_t generation, const struct abi_frame *frame,
		struct runtime_names *names);
};

#define RUNTIME(name) extern const struct runtime runtime_##name;
#include "agent/sampler/runtimes/runtimes.def"
#undef RUNTIME
