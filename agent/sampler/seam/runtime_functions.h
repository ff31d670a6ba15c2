/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a function of a language runtime means for whoever shows stacks, by its linkage name. The
 * answers are constant; a runtime's row has its names (agent/sampler/runtimes/runtime.h).
 */
#include <stdbool.h>

/* The first function of a thread or fiber: it has no caller. */
bool runtime_function_is_root(const char *name);
/*
 * A root beyond which other frames are not its callers: they belong to a fiber that the thread no
 * longer runs.
 */
bool runtime_function_hides_callers(const char *name);
/* Called on a fiber's stack when that has ended, however it did: nothing comes after it there. */
bool runtime_function_ends_fiber(const char *name);
/* A fiber that it creates, or that begins with it, collects garbage. */
bool runtime_function_collects(const char *name);
/* A thread without a fiber calls it to sleep until there is one. */
bool runtime_function_is_idle(const char *name);
/* A function of the runtime itself, which does not describe what a fiber does. */
bool runtime_function_is_own(const char *name);
