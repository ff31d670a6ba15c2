/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's symbols as they change while the agent runs. BPF programs and trampolines come and
 * go with side-band records; one that is gone keeps its name until the windows in which it may have
 * been sampled are sealed, even if another one has its address by then. No record announces kernel
 * modules: /proc/modules is compared before each report, and /proc/kallsyms is read again if it
 * differs. The symbols of an unloaded module keep their names for as long, unless another module
 * has taken their place. To be called by one thread.
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
 * Returns the symbols. The first call reads them, which takes the CPU time of some thousand
 * samples. Valid until the next call of kernel_symbols_forget(). Returns NULL, which is logged
 * once, if the kernel hides its addresses, or if we lack descriptors or memory; then a later call
 * tries again.
 */
const struct kallsyms *kernel_symbols_table(struct kernel_symbols *k);
/* Whether kernel_symbols_table() has read them, or never will. */
bool kernel_symbols_are_read(const struct kernel_symbols *k);
/*
 * Call it repeatedly once a stack needs the symbols. The first call starts a thread that reads
 * them: that takes 0.1 s, and the rings must be read meanwhile. Functions that need the symbols
 * earlier wait for the thread. Returns true once: when kernel_symbols_are_read() is true for the
 * first time.
 */
bool kernel_symbols_begin(struct kernel_symbols *k);
/*
 * Finds the kernel's own unwind tables by its symbols; BPF checks what it reads there. Reads the
 * symbols as kernel_symbols_table() does. Returns false if the kernel has no tables or hides them.
 */
bool kernel_symbols_unwind_tables(struct kernel_symbols *k, struct abi_kernel_tables *ret_tables);
size_t kernel_symbols_bytes(const struct kernel_symbols *k);
/*
 * Applies a PERF_RECORD_KSYMBOL: a symbol was added, or is GONE. Never waits for the symbols to be
 * read. Returns -EACCES if the kernel is known to hide them. A symbol that does not fit is counted.
 */
int kernel_symbols_change(struct kernel_symbols *k, const struct kallsyms_event *event, bool gone);
/* As kallsyms_tenant() and kallsyms_epoch(), of the changes so far. */
uint32_t kernel_symbols_tenant(const struct kernel_symbols *k, uint64_t kaddr);
uint64_t kernel_symbols_epoch(const struct kernel_symbols *k);
/*
 * Call before a report: reads the table again if the kernel's modules have changed since. Returns
 * true if it did; on failure the old table stays.
 */
bool kernel_symbols_renew(struct kernel_symbols *k, uint64_t now_ns);
/* Call between two reports: forgets symbols that were gone before BEFORE_NS. */
void kernel_symbols_forget(struct kernel_symbols *k, uint64_t before_ns);
