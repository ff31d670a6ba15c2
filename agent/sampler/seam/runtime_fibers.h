/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What users call fibers, the units of work that a runtime schedules onto threads itself. A
 * runtime's row has its words (agent/sampler/runtimes/runtime.h).
 */
#include <stdbool.h>

struct runtime_fibers {
	const char *one, *many; /* e.g. "goroutine", "goroutines" */
	const char *id; /* heads a column of their numbers; at most 10 columns */
};

/* The words for the fibers of all runtimes: a runtime's own if no other has fibers. */
const struct runtime_fibers *runtime_fibers(void);
/* Whether some runtime calls one of its fibers NAME. */
bool runtime_fibers_are_called(const char *name);
