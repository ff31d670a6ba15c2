/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's function names, from /proc/kallsyms: read as a stream, packed into sorted arrays
 * (32-bit offsets, one run of names), modules and BPF programs included. Adding one later
 * (PERF_RECORD_KSYMBOL) goes into a small list beside the table.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms;

struct ksymbol {
	const char *name;
	const char *module; /* "" = the kernel itself, "bpf" = a BPF program, else the module */
	uint64_t start; /* kaddr */
};

enum { KALLSYMS_TRAMPOLINES = 3 };

/* Places in the kernel that have no function's name; 0 = not listed. */
struct kallsyms_marks {
	uint64_t stext, etext; /* [_stext, _etext): its code, without modules */
	/* x86_64: the unwind table's addresses and its rules. */
	uint64_t orc_addresses, orc_addresses_end, orc_rules, orc_rules_end;
	/* What tracers make functions return to. */
	uint64_t trampolines[KALLSYMS_TRAMPOLINES];
};

/* From an open /proc/kallsyms. -EACCES when every address reads as 0 (kptr_restrict). */
int kallsyms_create(int fd, struct kallsyms **ret_kallsyms);
void kallsyms_destroy(struct kallsyms *k);
/* False where the address is in no function (outside all, or in a gap that is not one's). */
bool kallsyms_lookup(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol);
/* From PERF_RECORD_KSYMBOL: a BPF program or trampoline came or went. */
int kallsyms_add(struct kallsyms *k, uint64_t start, uint32_t size, const char *name, bool bpf);
void kallsyms_remove(struct kallsyms *k, uint64_t start);
const struct kallsyms_marks *kallsyms_marks(const struct kallsyms *k);
/* [_stext, _etext) of the kernel itself. */
void kallsyms_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end);
size_t kallsyms_bytes(const struct kallsyms *k);
/* Extent of a module's symbols, for its pprof mapping. False when unknown. */
bool kallsyms_module_range(
	const struct kallsyms *k, const char *module, uint64_t *ret_start, uint64_t *ret_end);
