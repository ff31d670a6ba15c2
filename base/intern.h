/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Byte strings → small numbers, each content once. Number 0 is always the empty string. The bytes
 * stay where they are until deinit, so pointers that intern_text() gave remain valid.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct intern_entry;

struct intern {
	struct intern_entry *entries;
	size_t count, capacity;
	uint32_t *slots; /* hash table of entry number + 1 */
	size_t slot_count;
	struct arena bytes;
	size_t limit; /* entries */
};

/* LIMIT entries and LIMIT_BYTES of content at most. */
int intern_init(struct intern *in, size_t limit, size_t limit_bytes);
void intern_deinit(struct intern *in);
/* The number of this content in *RET_NUMBER; -E2BIG over a limit, -ENOMEM. */
int intern_bytes(struct intern *in, const void *bytes, size_t size, uint32_t *ret_number);
int intern_string(struct intern *in, const char *text, uint32_t *ret_number);
/* NUL-terminated content; an unknown number gives "". */
const char *intern_text(const struct intern *in, uint32_t number);
size_t intern_size(const struct intern *in, uint32_t number);
/* 64-bit hash of bytes (xxhash 3); not for adversaries with write access to our memory. */
uint64_t hash_bytes(const void *bytes, size_t size);
