/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * User space's half of unwinding by tables: tells the kernel where the code of the sampled
 * processes lies, gives it the pages of tables it asks for, and finishes the walks that it could
 * not. Knows nothing of samples, profiles or BPF's loading.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"
#include "agent/sampler/unwind/target.h"
#include "base/metrics.h"
#include "symbolizer/index/index.h"

struct unwind;

enum unwind_module {
	UNWIND_MODULE_WAITING, /* its index is not there yet */
	UNWIND_MODULE_NONE, /* and will not be */
	UNWIND_MODULE_READY,
};

struct unwind_options {
	struct unwind_target target;
	struct metrics *metrics; /* borrowed */
	/* Whether a module's index is there; it lives until unwind_forget_module(). */
	enum unwind_module (*module)(
		void *context, const struct module *module, const struct index **ret_index);
	void *context;
};

int unwind_create(const struct unwind_options *options, struct unwind **ret_unwind);
void unwind_destroy(struct unwind *u);

/*
 * Makes what the kernel knows of P current, whose sample brought EXEC_ID. To be called at each
 * sample: mostly there is nothing to do, and never where the kernel finds mappings by itself.
 * Errors (out of room or memory) leave P to the frame pointer, and are counted.
 */
int unwind_sync(struct unwind *u, const struct process *p, uint32_t exec_id);
/* A walk of P came upon code that we know nothing of either: the kernel need not ask for it. */
void unwind_settle(struct unwind *u, const struct process *p);
/*
 * Takes in which file the kernel says is mapped where REST was, in a process with MAPPINGS at that
 * instant. Nothing where it does not say so, or these are not what it says.
 */
void unwind_learn(
	struct unwind *u, const struct mappings *mappings, const struct abi_unwind_rest *rest);
/* What the kernel told of a mapping, as agent/sampler/process compares it. */
struct seen_mapping unwind_seen(const struct abi_mapping *told);
struct seen_mapping unwind_sighting(const struct abi_sighting *told);
/* P has ended. */
void unwind_forget(struct unwind *u, const struct process *p);
/* MODULE and its index are about to go: no process maps it. */
void unwind_forget_module(struct unwind *u, const struct module *module);
/* MODULE's index gives way to INDEX, of the same file: its tables are the same. */
void unwind_replace_index(struct unwind *u, const struct module *module, const struct index *index);
/* The index of some module came, or will not come. */
void unwind_modules_changed(struct unwind *u);
/* A sample wanted SLOT's page. */
void unwind_want(struct unwind *u, uint32_t slot);
/* For want of memory no walk can be finished here for the time being (or again, it can). */
void unwind_pause(struct unwind *u, bool paused);
/* About once a second. */
void unwind_turn(struct unwind *u);

struct unwind_stack {
	uint64_t frames[ABI_MAX_FRAMES]; /* innermost first */
	uint32_t count;
	enum abi_unwind_end end;
};

/*
 * Goes on where the kernel stopped: STACK has the frames so far, REST tells of the last of them,
 * BYTES are the REST->stack_bytes of the stack. NULL when the walk is over; else the mapping of a
 * module whose index is not there yet, and STACK is as far as it goes without: call again with the
 * stack of the beginning when it came. FORCE: not to wait for it.
 */
const struct mapping *unwind_finish(struct unwind *u, const struct mappings *mappings,
	const struct abi_unwind_rest *rest, const uint8_t *bytes, bool force,
	struct unwind_stack *stack);
