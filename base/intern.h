/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Interns byte strings: each distinct content is stored once and gets a small number. Number 0 is
 * always the empty string. Bytes never move, so pointers from intern_text() are valid until deinit.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct intern_entry;
struct intern_slot;

struct intern {
	struct intern_entry *entries;
	size_t count, capacity;
	struct intern_slot *slots; /* hash table */
	size_t slot_count;
	uint32_t next; /* of the entry that was looked up last: equal sequences come again */
	struct arena bytes;
	size_t limit; /* entries */
};

/* Holds at most LIMIT entries and LIMIT_BYTES of content. */
int intern_init(struct intern *in, size_t limit, size_t limit_bytes);
void intern_deinit(struct intern *in);
/* Stores the number of this content in *RET_NUMBER. Returns -E2BIG over a limit, or -ENOMEM. */
int intern_bytes(struct intern *in, const void *bytes, size_t size, uint32_t *ret_number);
/* Looks this content up without adding it; false if it is not there. */
bool intern_known(const struct intern *in, const void *bytes, size_t size, uint32_t *ret_number);
int intern_string(struct intern *in, const char *text, uint32_t *ret_number);
/* Returns the NUL-terminated content; "" for an unknown number. */
const char *intern_text(const struct intern *in, uint32_t number);
size_t intern_size(const struct intern *in, uint32_t number);
/* 64-bit hash (XXH3), not cryptographic. */
uint64_t hash_bytes(const void *bytes, size_t size);
