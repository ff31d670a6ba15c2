/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * User space's half of unwinding by tables: tells the kernel where the code of the sampled
 * processes lies, loads the table pages that it misses, and finishes its unfinished walks. Knows
 * nothing of samples, profiles or BPF's loading.
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
	UNWIND_MODULE_WAITING, /* its index is not ready yet */
	UNWIND_MODULE_NONE, /* there will be no index */
	UNWIND_MODULE_READY,
};

struct unwind_options {
	struct unwind_target target;
	struct metrics *metrics; /* borrowed */
	bool wide_rules; /* for tests: MECHANISM_PACKED_RULES is off */
	/* Looks up a module's index, which stays valid until unwind_forget_module(). */
	enum unwind_module (*module)(
		void *context, const struct module *module, const struct index **ret_index);
	void *context;
};

int unwind_create(const struct unwind_options *options, struct unwind **ret_unwind);
void unwind_destroy(struct unwind *u);

/*
 * Updates what the kernel knows of P, whose sample has EXEC_ID. Call it for each sample; usually
 * there is nothing to do, with the VMA lookup never. On errors (no room or memory), which are
 * counted except for -EAGAIN, the kernel keeps what it had of P, if anything.
 */
int unwind_sync(struct unwind *u, const struct process *p, uint32_t exec_id);
/* A walk of P found code that user space does not know either: the kernel need not report more. */
void unwind_settle(struct unwind *u, const struct process *p);
/*
 * Learns which module the file is that the kernel found mapped at REST's pc, from MAPPINGS, the
 * process's mappings at that time. Does nothing if the kernel found none, or MAPPINGS disagree.
 */
void unwind_learn(
	struct unwind *u, const struct mappings *mappings, const struct abi_unwind_rest *rest);
/* Converts a mapping that the kernel reported for comparison by agent/sampler/process. */
struct seen_mapping unwind_seen(const struct abi_mapping *reported);
struct seen_mapping unwind_sighting(const struct abi_sighting *reported);
/* P has ended. */
void unwind_forget(struct unwind *u, const struct process *p);
/* MODULE and its index are about to be freed: no process maps it. */
void unwind_forget_module(struct unwind *u, const struct module *module);
/* Replaces MODULE's index by INDEX, of the same file and with the same tables. */
void unwind_replace_index(struct unwind *u, const struct module *module, const struct index *index);
/* Call it when a module's index is ready, or will not come. */
void unwind_modules_changed(struct unwind *u);
/* A sample's walk missed the page of SLOT. */
void unwind_want(struct unwind *u, uint32_t slot);
/* Loads some of the pages that walks will miss next. Call it each time the rings have been read. */
void unwind_load_ahead(struct unwind *u);
/* PAUSED: user space has no memory to finish walks for now. */
void unwind_pause(struct unwind *u, bool paused);
/* Call it about once a second. */
void unwind_tick(struct unwind *u);

/* A stack in the words of struct abi_stack. */
struct unwind_stack {
	uint64_t frames[ABI_MAX_FRAMES]; /* innermost first */
	uint32_t count;
	uint32_t flags; /* ABI_STACK_RUNTIME_FRAMES, ABI_STACK_MIDDLE (no ring), or 0 */
	enum abi_unwind_end end;
	/*
	 * The frame with this number was found by a search for its return address
	 * (agent/sampler/unwind/guess.h); 0 = none.
	 */
	uint32_t guessed;
};

/* What an unfinished sample has of its process. */
struct unwind_copied {
	const struct abi_unwind_rest *rest; /* the registers of the last frame so far */
	const uint8_t *bytes; /* rest->stack_bytes of stack */
	const struct abi_returns *returns; /* of that stack; NULL = not known */
};

/*
 * Continues a walk where the kernel stopped: STACK has the frames so far. Returns NULL when the
 * walk is over. Otherwise it returns the mapping of a module whose index is not ready yet, with
 * STACK as far as it goes without it: call again with the initial STACK when the index is there.
 * FORCE: do not wait for indexes.
 */
const struct mapping *unwind_finish(struct unwind *u, const struct mappings *mappings,
	const struct unwind_copied *copied, bool force, struct unwind_stack *stack);
