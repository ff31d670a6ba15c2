/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's symbols as they change while the agent runs. BPF programs and trampolines come and
 * go with side-band records; one that is gone keeps its name until the windows in which it may have
 * been sampled are sealed. Of kernel modules nobody tells: /proc/modules is looked at, and
 * /proc/kallsyms read again when it differs, because the next module may take the place, and would
 * get the names, of one that was unloaded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/kallsyms.h"

struct abi_kernel_tables;
struct kernel_symbols;

/* PROC_FD is an open /proc; borrowed. */
int kernel_symbols_create(int proc_fd, struct kernel_symbols **ret_symbols);
void kernel_symbols_destroy(struct kernel_symbols *k);
/*
 * The first call reads them, which takes the CPU time of some thousand samples. Valid until the
 * next call of kernel_symbols_renew(). NULL, and said once in the log, where the kernel hides its
 * addresses.
 */
const struct kallsyms *kernel_symbols_table(struct kernel_symbols *k);
/* Whether that was called. */
bool kernel_symbols_are_read(const struct kernel_symbols *k);
/*
 * Where the kernel says that its own unwind tables are, for BPF, which checks what it makes of
 * them. Reads the symbols as kernel_symbols_table() does. False: it has none, or hides them.
 */
bool kernel_symbols_unwind_tables(struct kernel_symbols *k, struct abi_kernel_tables *ret_tables);
size_t kernel_symbols_bytes(const struct kernel_symbols *k);
/* From PERF_RECORD_KSYMBOL. -EACCES as above. */
int kernel_symbols_add(
	struct kernel_symbols *k, uint64_t kaddr, uint32_t size, const char *name, bool bpf);
/* NOW_NS is of CLOCK_MONOTONIC. */
void kernel_symbols_gone(struct kernel_symbols *k, uint64_t kaddr, uint64_t now_ns);
/*
 * Between two reports: forgets what was gone before BEFORE_NS, and reads the table again if the
 * kernel's modules have changed. Returns true when it did; on a failure the old table stays.
 */
bool kernel_symbols_renew(struct kernel_symbols *k, uint64_t before_ns);
