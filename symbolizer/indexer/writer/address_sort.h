/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sorts by address without comparing: by eleven bits at a time, from the lowest on. Bits that are
 * the same in all addresses cost nothing, so that a module of usual size takes two or three passes.
 */
#include <stddef.h>
#include <stdint.h>

struct address_item {
	uint32_t address; /* from a lowest one on */
	uint32_t number; /* whose it is */
};

/* Ascending; of the same address, in the order that they had. -ENOMEM: nothing was changed. */
int address_sort(struct address_item *items, size_t count);
