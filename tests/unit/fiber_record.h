/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes records of facts about fibers, as BPF sends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/profile/profile.h"

union fiber_record {
	struct abi_fiber_facts facts;
	uint64_t words[(sizeof(struct abi_fiber_facts) + 2048) / sizeof(uint64_t)];
};

static inline void fiber_record_begin(union fiber_record *r, uint32_t window, uint64_t id)
{
	memset(r, 0, sizeof(*r));
	r->facts.kind = ABI_FIBER_FACTS;
	r->facts.flags = ABI_FIBER_FACTS_MARK;
	r->facts.window = window;
	r->facts.id = id;
	r->facts.word_count = ABI_FIBER_CONTENT_HEAD_WORDS;
}

static inline void fiber_record_add_bytes(
	union fiber_record *r, const void *key, size_t key_bytes, const void *value, size_t bytes)
{
	uint8_t *at = r->facts.labels + r->facts.label_bytes;

	assert_true(r->facts.label_bytes + 2 + key_bytes + bytes <= ABI_FIBER_LABEL_BYTES);
	at[0] = (uint8_t)key_bytes;
	at[1] = (uint8_t)bytes;
	memcpy(at + 2, key, key_bytes);
	memcpy(at + 2 + key_bytes, value, bytes);
	r->facts.label_count++;
	r->facts.label_bytes += (uint32_t)(2 + key_bytes + bytes);
	r->facts.word_count = ABI_FIBER_CONTENT_HEAD_WORDS + (r->facts.label_bytes + 7) / 8;
}

static inline void fiber_record_add(union fiber_record *r, const char *key, const char *value)
{
	fiber_record_add_bytes(r, key, strlen(key), value, strlen(value));
}

static inline void put_raw_facts(struct profile *profile, const union fiber_record *r)
{
	assert_int_equal(profile_put_raw(profile, (const struct abi_stack *)&r->facts), 0);
}
