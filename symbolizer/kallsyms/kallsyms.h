/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's function names, from /proc/kallsyms: read as a stream, packed into sorted arrays
 * (32-bit offsets, one run of names), modules and BPF programs included. What comes and goes later
 * (PERF_RECORD_KSYMBOL) is in a small list beside the table: several may have an address one after
 * the other, and which of them a sample was of is kept as the number of this tenant.
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
/*
 * Who has KADDR at this point of the records, for kallsyms_lookup_of(). 0: nobody that they told of
 * the coming of.
 */
uint32_t kallsyms_tenant(const struct kallsyms *k, uint64_t kaddr);
enum { KALLSYMS_TENANT_BITS = 31 };
/* Another number whenever an address may have another tenant. */
uint64_t kallsyms_turn(const struct kallsyms *k);
/*
 * The symbol of KADDR in TENANT's time. False where the address is in no function (outside all, or
 * in a gap that is not one's), or nobody can tell whose it was.
 */
bool kallsyms_lookup_of(
	const struct kallsyms *k, uint64_t kaddr, uint32_t tenant, struct ksymbol *ret_symbol);
/* Now. */
bool kallsyms_lookup(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol);

/* From PERF_RECORD_KSYMBOL: a BPF program or trampoline came or went. In time order. */
struct kallsyms_event {
	uint64_t start; /* kaddr */
	uint32_t size;
	bool bpf;
	const char *name;
	uint64_t time_ns; /* CLOCK_MONOTONIC; may be later than it happened, never earlier */
};
int kallsyms_add(struct kallsyms *k, const struct kallsyms_event *event);
int kallsyms_gone(struct kallsyms *k, const struct kallsyms_event *event);
/* How many of these had no room, or were forgotten for want of it. */
size_t kallsyms_refused(const struct kallsyms *k);
/* Forgets what has gone before BEFORE_NS. */
void kallsyms_forget(struct kallsyms *k, uint64_t before_ns);
/*
 * NEWER, which was read later because the kernel's modules have changed before NOW_NS, takes the
 * place of *K, whose modules keep their names until kallsyms_forget(). An address that is in two
 * modules' functions has no name until then. -E2BIG: this was done too often since.
 */
int kallsyms_replace(struct kallsyms **k, struct kallsyms *newer, uint64_t now_ns);
const struct kallsyms_marks *kallsyms_marks(const struct kallsyms *k);
/* [_stext, _etext) of the kernel itself. */
void kallsyms_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end);
size_t kallsyms_bytes(const struct kallsyms *k);
/* Extent of a module's symbols, for its pprof mapping. False when unknown. */
bool kallsyms_module_range(
	const struct kallsyms *k, const char *module, uint64_t *ret_start, uint64_t *ret_end);
