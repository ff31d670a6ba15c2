/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The programs of a window that stay without names, why, and what would name them. A sample has no
 * name if the innermost frame of its user stack has none; waits do not count.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/report/report.h"

enum nameless_why {
	NAMELESS_JIT, /* memory without a file: code of a JIT compiler that no perf map names */
	NAMELESS_STRIPPED, /* a file without symbols there */
	NAMELESS_NO_INDEX, /* a file that could not be read, or not yet */
	NAMELESS_NOWHERE, /* no mapping */
	NAMELESS_REASONS,
};

/* Texts are owned by the list; control characters are replaced. */
struct report_nameless {
	char *program; /* file name of the program, or the process's comm */
	char *file; /* where most samples without a name are; "" = in no file */
	enum nameless_why why; /* most of them */
	uint32_t pid; /* the process that has most of them */
	bool contained; /* that process is in a container: FILE is a path in there */
	uint64_t count, total; /* its samples without a name, and all that have a user stack */
};

/*
 * Lists the programs of which many samples have no name, those with the most first. A program with
 * few is not worth a line: under a twentieth of its samples, or a hundredth of all.
 */
int report_nameless(const struct report_sources *sources, size_t max,
	struct report_nameless **ret_list, size_t *ret_count);
void report_nameless_free(struct report_nameless *list, size_t count);
/*
 * Writes what would name N's samples: `no symbols in /usr/bin/x: install x-dbgsym or …`. PACKAGE
 * has the debug symbols of N's file; NULL = not known.
 */
void nameless_hint(const struct report_nameless *n, const char *package, char *text, size_t size);
