/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's lists of its functions, as text. Those of tracefs and debugfs need not be mounted
 * anywhere: they are then read through a mount that only we have.
 */
#include "base/buffer.h"

struct kernel_lists {
	struct buffer symbols; /* /proc/kallsyms */
	struct buffer traceable; /* available_filter_functions; empty = not known */
	struct buffer forbidden; /* kprobes/blacklist; empty = not known */
};

/* Returns a negative errno if kallsyms cannot be read; the other lists may be missing. */
int kernel_lists_read(struct kernel_lists *ret_lists);
void kernel_lists_deinit(struct kernel_lists *lists);
