/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's function names from /proc/kallsyms, including modules and BPF programs: read as a
 * stream, packed into sorted arrays (32-bit offsets, one text of names). Later changes
 * (PERF_RECORD_KSYMBOL) are in a small list next to the table. Several tenants may use an address
 * one after another; a sample keeps the number of the tenant it hit.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms;

struct ksymbol {
	const char *name;
	const char *module; /* "" = the kernel itself, "bpf" = a BPF program, else the module */
	uint64_t start; /* kaddr */
	/*
	 * What was loaded as one piece with it: "" = the kernel, its module, or itself (the name of
	 * a BPF program, a trampoline, a module's function that runs once).
	 */
	const char *image;
	uint64_t image_start; /* kaddr; 0 = not known */
};

/* How the names of the padding before x86's functions begin. */
#define KALLSYMS_PADDING "__pfx_"

enum { KALLSYMS_TRAMPOLINES = 3 };

/* Kernel addresses other than functions; 0 = not listed. */
struct kallsyms_marks {
	uint64_t text; /* _text, where the kernel's image begins; _stext if it is not listed */
	uint64_t stext, etext; /* [_stext, _etext): kernel code without modules */
	/* What exceptions, interrupts and system calls enter; all 0 if it is not listed. */
	uint64_t entry, entry_end;
	/* x86_64: addresses and rules of the ORC unwind table. */
	uint64_t orc_addresses, orc_addresses_end, orc_rules, orc_rules_end;
	/* Return trampolines of function tracers. */
	uint64_t trampolines[KALLSYMS_TRAMPOLINES];
};

/* Reads an open /proc/kallsyms. Returns -EACCES if every address reads as 0 (kptr_restrict). */
int kallsyms_create(int fd, struct kallsyms **ret_kallsyms);
/* A table without symbols, for the changes before one is read. Returns 0 or -ENOMEM. */
int kallsyms_create_empty(struct kallsyms **ret_kallsyms);
void kallsyms_destroy(struct kallsyms *k);
/*
 * Reads an open /proc/modules: where modules begin. Without it, or for a module that it does not
 * list, that is the page of the module's first symbol, which may be of code that is there only
 * while the module is being loaded.
 */
int kallsyms_place_modules(struct kallsyms *k, int fd);
/*
 * Returns KADDR's tenant after the records so far, for kallsyms_lookup_of(); 0 if no record
 * announced one.
 */
uint32_t kallsyms_tenant(const struct kallsyms *k, uint64_t kaddr);
enum { KALLSYMS_TENANT_BITS = 31 };
/* Returns an epoch that changes whenever an address may have another tenant. */
uint64_t kallsyms_epoch(const struct kallsyms *k);
/*
 * Finds the symbol of KADDR at the time of TENANT. Returns false if the address is in no function
 * (outside all, or in a gap between regions), or if its owner is ambiguous.
 */
bool kallsyms_lookup_of(
	const struct kallsyms *k, uint64_t kaddr, uint32_t tenant, struct ksymbol *ret_symbol);
/* Finds KADDR's current symbol. */
bool kallsyms_lookup(const struct kallsyms *k, uint64_t kaddr, struct ksymbol *ret_symbol);

/* A PERF_RECORD_KSYMBOL: a BPF program or trampoline came or went. To be added in time order. */
struct kallsyms_event {
	uint64_t start; /* kaddr */
	uint32_t size;
	bool bpf;
	const char *name;
	uint64_t time_ns; /* CLOCK_MONOTONIC; never earlier than the event */
};
int kallsyms_add(struct kallsyms *k, const struct kallsyms_event *event);
int kallsyms_gone(struct kallsyms *k, const struct kallsyms_event *event);
/* Number of tenants dropped, or forgotten early, for lack of space. */
size_t kallsyms_refused(const struct kallsyms *k);
/* Forgets tenants that went, and tables that were replaced, before BEFORE_NS. */
void kallsyms_forget(struct kallsyms *k, uint64_t before_ns);
/*
 * Replaces *K by NEWER, read because the kernel's modules changed before NOW_NS. The modules of *K
 * keep their names until kallsyms_forget(); an address that is in functions of two modules has no
 * name until then. Returns -E2BIG if too many older tables are still kept.
 */
int kallsyms_replace(struct kallsyms **k, struct kallsyms *newer, uint64_t now_ns);
/* Replaces *K, which is empty but for its changes, by NEWER. */
void kallsyms_read_over(struct kallsyms **k, struct kallsyms *newer);
const struct kallsyms_marks *kallsyms_marks(const struct kallsyms *k);
/* [_stext, _etext) of the kernel itself. */
void kallsyms_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end);
size_t kallsyms_bytes(const struct kallsyms *k);
/* Returns the extent of a module's symbols, for its pprof mapping; false if unknown. */
bool kallsyms_module_range(
	const struct kallsyms *k, const char *module, uint64_t *ret_start, uint64_t *ret_end);
/* Returns where IMAGE, as in struct ksymbol, begins now; false if it is not loaded. */
bool kallsyms_image_start(const struct kallsyms *k, const char *image, uint64_t *ret_start);
