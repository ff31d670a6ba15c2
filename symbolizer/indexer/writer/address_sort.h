/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Radix sort by address, eleven bits at a time from the lowest. Bits that are equal in all
 * addresses cost nothing, so a module of usual size takes two or three passes.
 */
#include <stddef.h>
#include <stdint.h>

struct address_item {
	uint32_t address; /* relative to a base */
	uint32_t number; /* the owner's number */
};

/* Sorts in ascending order, stable. On -ENOMEM nothing has changed. */
int address_sort(struct address_item *items, size_t count);
