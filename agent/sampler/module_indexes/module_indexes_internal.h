/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by module_indexes.c and module_functions.c only. */
#include "agent/sampler/module_indexes/module_indexes.h"
#include "base/log.h"
#include "base/map.h"

enum module_index_state {
	MODULE_INDEX_UNASKED,
	MODULE_INDEX_ASKED,
	MODULE_INDEX_ANSWERED,
	MODULE_INDEX_UNOPENED,
	MODULE_INDEX_POSTPONED,
};

enum module_functions {
	MODULE_FUNCTIONS_UNWANTED,
	MODULE_FUNCTIONS_WANTED, /* `functions` is to be called */
	MODULE_FUNCTIONS_TOLD,
};

struct module_index {
	struct module *module; /* borrowed until module_indexes_forget() */
	enum module_index_state state;
	struct index *index; /* NULL = none */
	enum module_functions functions;
	uint64_t told_ns; /* when `functions` was last called */
	bool absent; /* the last answer was that there is none; never with an index */
	bool late; /* debug files that it may have did not answer */
	uint64_t again_ns; /* see the states in the header; 0 = never */
	/* UNOPENED, POSTPONED: generation whose file could not be opened; 0 = of none. */
	uint32_t unopened_process;
	unsigned int postponed; /* times in a row */
	uint64_t offered_ns; /* when the owner was last offered the file; 0 = never */
	bool not_cached; /* the cache had nothing complete at the program's exec */
};

struct module_indexes {
	struct module_indexes_options options;
	struct map by_number; /* module number → struct module_index */
	uint64_t now_ns; /* time of the newest sample */
	uint64_t known_stacks_until_ns;
	uint64_t offers_from_ns; /* files offered before this are offered again */
	struct log_rate postponed_log;
};

/*
 * Pause after no index, or none with functions, was available: a build that took too long may
 * finish on a quieter machine.
 */
static const uint64_t MODULE_INDEX_ABSENT_NS = UINT64_C(60000000000);

/* module_indexes.c: creates the entry on first use. NULL if out of memory or the table is full. */
struct module_index *module_indexes_make(struct module_indexes *indexes, struct module *module);
/* module_functions.c: M got an answer; tells the owner if it waits for functions. */
void module_index_tell_functions(struct module_indexes *indexes, struct module_index *m);
