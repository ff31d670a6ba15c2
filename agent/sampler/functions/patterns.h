/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Patterns that name functions: `[BIN:]PATTERN`, as users give them with -u and --exclude. PATTERN
 * is a glob (glob.h) that matches a whole name: demangled, with or without parameters and return
 * type, or the linkage name. If some function of a file has exactly PATTERN as its name, PATTERN is
 * no glob there: `f(char*)` is one function.
 *
 * BIN ends at the first single colon outside of brackets; `::` belongs to C++ and Rust names. With
 * a slash it is the path of a file, else the file's name, `libc.so.6` or only `libc`; both may be
 * globs. Knows no index, process or file system.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/sampler/functions/name_forms.h"

struct function_pattern {
	char *text; /* as given */
	char *binary; /* NULL = none */
	/* What BINARY, if a path, stands for once symbolic links are followed; NULL = unknown. */
	char *resolved;
	const char *glob; /* the part after the colon */
};

struct function_patterns {
	struct function_pattern *items;
	size_t count, capacity;
};

/*
 * Adds TEXT. Returns -EINVAL and sets *RET_PROBLEM, a text that follows TEXT in a message; -E2BIG
 * if there are too many or TEXT is too long; -ENOMEM.
 */
int function_patterns_add(
	struct function_patterns *patterns, const char *text, const char **ret_problem);
void function_patterns_deinit(struct function_patterns *patterns);

/* Whether BIN, which the pattern has, names the file at PATH, as a process that maps it sees it. */
bool function_pattern_names_file(const struct function_pattern *pattern, const char *path);

enum function_match {
	FUNCTION_DIFFERS,
	FUNCTION_MATCHES,
	FUNCTION_EQUALS, /* the name is the pattern itself */
};
/* How the part after the colon matches one of FORMS. */
enum function_match function_pattern_match(
	const struct function_pattern *pattern, const struct name_forms *forms);
