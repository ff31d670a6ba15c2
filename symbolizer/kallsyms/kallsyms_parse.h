/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The first half of kallsyms.c: parses /proc/kallsyms as a stream of lines and keeps only those
 * that mark code. Private to kallsyms.c.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "symbolizer/kallsyms/kallsyms.h"

enum {
	KSYM_NO_NAME = 0, /* offset of "" in the text: marks an end of code */
	KSYM_KERNEL = 0, /* module number of the kernel itself */
	KSYM_MODULE_BYTES = 64, /* MODULE_NAME_LEN is 56 */
	KSYM_RANK_LABEL = UINT8_MAX,
};

struct ksym_line {
	uint64_t kaddr;
	uint32_t name; /* offset in the text */
	uint16_t module;
	uint8_t rank; /* among several names at one address the lowest rank wins */
};

struct ksym_module {
	char name[KSYM_MODULE_BYTES];
	/* Its place; size 0 = not a module: kallsyms puts functions loaded one by one under it. */
	uint64_t base, size; /* kaddr, bytes */
};

struct ksym_parse {
	struct ksym_line *lines;
	size_t count, capacity;
	struct buffer text; /* NUL-terminated names */
	struct ksym_module *modules;
	size_t module_count, module_capacity;
	struct kallsyms_marks marks;
	size_t hidden; /* lines whose address reads as 0 */
};

void ksym_parse_init(struct ksym_parse *p);
void ksym_parse_deinit(struct ksym_parse *p);
/* Reads FD to its end; skips malformed lines. */
int ksym_parse_file(struct ksym_parse *p, int fd);
