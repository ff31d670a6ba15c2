/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's symbols as they change while the agent runs. BPF programs and trampolines come and
 * go with side-band records; one that is gone keeps its name until the windows in which it may have
 * been sampled are sealed, also when another has its address by then. No record announces kernel
 * modules: /proc/modules is compared before each report, and /proc/kallsyms read again when it
 * differs. What was in an unloaded module keeps its name for as long, unless another module has
 * taken its place. One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "symbolizer/kallsyms/kallsyms.h"

struct abi_kernel_tables;
struct kernel_symbols;

/* PROC_FD is an open /proc; both are borrowed. */
int kernel_symbols_create(
	int proc_fd, struct metrics *metrics, struct kernel_symbols **ret_symbols);
void kernel_symbols_destroy(struct kernel_symbols *k);
/*
 * The first call reads them, which takes the CPU time of some thousand samples. Valid until the
 * next call of kernel_symbols_forget(). NULL, which is logged once: the kernel hides its addresses,
 * or we have no descriptors or memory; then a later call tries again.
 */
const struct kallsyms *kernel_symbols_table(struct kernel_symbols *k);
/* Whether kernel_symbols_table() has read them, or never will. */
bool kernel_symbols_are_read(const struct kernel_symbols *k);
/*
 * Where the kernel's own unwind tables are, by its symbols; BPF checks what it reads there. Reads
 * the symbols as kernel_symbols_table() does. False: the kernel has no tables, or hides them.
 */
bool kernel_symbols_unwind_tables(struct kernel_symbols *k, struct abi_kernel_tables *ret_tables);
size_t kernel_symbols_bytes(const struct kernel_symbols *k);
/* From PERF_RECORD_KSYMBOL. -EACCES: there is no table, as above. What finds no room is counted. */
int kernel_symbols_add(struct kernel_symbols *k, const struct kallsyms_event *event);
int kernel_symbols_gone(struct kernel_symbols *k, const struct kallsyms_event *event);
/* As kallsyms_tenant() and kallsyms_turn(); 0 while nobody has asked for names. */
uint32_t kernel_symbols_tenant(const struct kernel_symbols *k, uint64_t kaddr);
uint64_t kernel_symbols_turn(const struct kernel_symbols *k);
/*
 * Before a report: reads the table again if the kernel's modules have changed since it was read.
 * Returns true when it did; on a failure the old table stays.
 */
bool kernel_symbols_renew(struct kernel_symbols *k, uint64_t now_ns);
/* Between two reports: forgets what was gone before BEFORE_NS. */
void kernel_symbols_forget(struct kernel_symbols *k, uint64_t before_ns);
