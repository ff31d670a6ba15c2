/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `fathom trace` fetches of which functions: by the rules of -a, or by DWARF for --args. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/commands/trace_reading.h"
#include "agent/trace/trace_names.h"
#include "agent/trace_arguments/fetch_rule.h"
#include "base/map.h"
#include "symbolizer/builds/function_arguments.h"

struct config;
struct probed_chosen;
struct probed_function;
struct sampler;

/* The settings. */
struct trace_rules {
	struct fetch_rule *items;
	size_t count, capacity;
	bool by_dwarf;
	const char *debug_directories; /* borrowed */
};

struct trace_arguments {
	const struct trace_rules *rules; /* borrowed */
	bool *used; /* each rule: for a function that is traced */
	struct function_arguments *items; /* by number, less 1, in by_function */
	size_t count, capacity;
	struct map by_function; /* 0 = its debug information is being read */
	struct sampler *sampler; /* borrowed; NULL = no function was chosen so far */
	struct trace_reading reading;
	size_t not_fetched; /* functions for which there was no room */
};

/* Returns -EINVAL after printing the mistake. */
int trace_rules_read(const struct config *config, struct trace_rules *ret_rules);
void trace_rules_deinit(struct trace_rules *rules);

int trace_arguments_init(struct trace_arguments *a, const struct trace_rules *rules);
/* Before functions are chosen: what reads in the background does it from LOOP. */
void trace_arguments_use_loop(struct trace_arguments *a, struct loop *loop);
void trace_arguments_deinit(struct trace_arguments *a);
/* Whether anything is to be fetched. */
bool trace_rules_any(const struct trace_rules *rules);
/*
 * FUNCTIONS of FILE are about to be traced. For --args, unless an earlier run has kept where their
 * arguments are, a child begins to read: from when it has ended on, they are fetched.
 */
void trace_arguments_chosen(struct trace_arguments *a, struct sampler *sampler,
	const struct probed_chosen *file, const struct probed_function *functions, size_t count);
/* Runs the loop until the arguments of all chosen functions are known, or something stops it. */
int trace_arguments_wait(struct trace_arguments *a);
/* As in struct trace_names. */
bool trace_arguments_has_values(const struct trace_arguments *a, uint32_t function);
/* Prints which rules are for functions of which none has been chosen: "no function F WHEN". */
void trace_arguments_say_unused(const struct trace_arguments *a, const char *when);
/* As in struct trace_names. */
void trace_arguments_text(const struct trace_arguments *a, uint32_t function, bool results,
	const void *payload, size_t size, struct buffer *out);
void trace_arguments_json(const struct trace_arguments *a, uint32_t function, bool results,
	const void *payload, size_t size, struct json *j);
