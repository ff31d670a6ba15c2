/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table of symbols, shared by kallsyms.c, which makes it, and kallsyms_lookup.c. */
#include "symbolizer/kallsyms/kallsyms.h"
#include "symbolizer/kallsyms/kallsyms_parse.h"
#include "symbolizer/kallsyms/ksym_tenants.h"

/* Offset and name are adjacent: the search ends in the cache line that has both. */
struct symbol {
	uint32_t offset; /* from the region's base; ascending in each region */
	uint32_t name; /* offset in the text */
};

/* Symbols [first, first + count) of one module. */
struct region {
	uint64_t base; /* kaddr of its first symbol, the base of the offsets */
	uint64_t end;
	uint32_t first, count;
	uint16_t module;
};

struct kallsyms {
	struct region *regions; /* ascending, disjoint */
	size_t region_count, region_capacity;
	struct symbol *symbols;
	size_t count;
	char *text;
	size_t text_bytes;
	struct ksym_module *modules; /* number 1 is the first */
	size_t module_count;
	struct kallsyms_marks marks;
	struct ksym_tenants tenants; /* changes from PERF_RECORD_KSYMBOL */
	/* The table that this one replaced, for samples from its time. */
	struct kallsyms *before;
	uint64_t replaced_ns; /* when this one was replaced; 0 = never */
};

/* The number of regions that start at or below KADDR. */
size_t kallsyms_regions_up_to(const struct kallsyms *k, uint64_t kaddr);
/* Returns the region of this table, not of those that it replaced, that has KADDR; or NULL. */
const struct region *kallsyms_find_region(const struct kallsyms *k, uint64_t kaddr);
/* Returns the last symbol of R at or below KADDR, which is in R. */
struct symbol *kallsyms_find_symbol(
	const struct kallsyms *k, const struct region *r, uint64_t kaddr);
