/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists of CPU numbers as sysfs writes them: `0-3,8`. */
#include <stdbool.h>
#include <stddef.h>

struct cpu_list {
	int *numbers; /* rising */
	size_t count, capacity;
};

void cpu_list_deinit(struct cpu_list *list);
/* Returns -EBADMSG if TEXT is no list of rising numbers, -E2BIG for numbers over our limit. */
int cpu_list_parse(const char *text, struct cpu_list *ret_list);
/* The CPUs that are online now. */
int cpu_list_online(struct cpu_list *ret_list);
bool cpu_list_has(const struct cpu_list *list, int cpu);
