/* SPDX-License-Identifier: Apache-2.0 */
/* Go's pprof labels as BPF reads them, from memory that is right, cut off, or forged. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/runtimes/go_labels.bpf.h"

enum {
	BASE = 0x10000, /* where the process's memory begins */
	MEMORY_BYTES = 1 << 20,
	LABELS = BASE + 0x100, /* what g.labels points to */
	MAP = BASE + 0x200,
	BUCKETS = BASE + 0x1000,
	OLD_BUCKETS = BASE + 0x8000,
	OVERFLOW = BASE + 0x10000,
	PAIRS = BASE + 0x20000, /* of the slice */
	TEXTS = BASE + 0x40000,
	EVACUATED = 2,
	TOP_HASH = 99,
};

/* What the kernel side has: places of a record are masked, so there is more room than is used. */
union record {
	struct abi_fiber_facts facts;
	uint8_t bytes[8192];
};

static uint8_t *memory;
static uint64_t texts_end;
static unsigned int reads;

long read_user(void *to, __u32 size, __u64 address)
{
	reads++;
	if (address < BASE || address > BASE + MEMORY_BYTES ||
		size > BASE + MEMORY_BYTES - address) {
		memset(to, 0, size); /* as the kernel does */
		return -EFAULT;
	}
	memcpy(to, memory + (address - BASE), size);
	return 0;
}

static void put(uint64_t address, const void *bytes, size_t size)
{
	assert_true(address >= BASE && size <= BASE + MEMORY_BYTES - address);
	memcpy(memory + (address - BASE), bytes, size);
}

static void put_word(uint64_t address, uint64_t word)
{
	put(address, &word, sizeof(word));
}

static uint64_t put_text(const char *text)
{
	uint64_t address = texts_end;

	put(address, text, strlen(text));
	texts_end += strlen(text) + 1;
	return address;
}

static void put_string(uint64_t address, uint64_t text, uint64_t bytes)
{
	put_word(address, text);
	put_word(address + 8, bytes);
}

static void put_both(uint64_t key_at, uint64_t value_at, const char *key, const char *value)
{
	put_string(key_at, put_text(key), strlen(key));
	put_string(value_at, put_text(value), strlen(value));
}

static int empty_memory(void **state)
{
	(void)state;
	memory = calloc(1, MEMORY_BYTES);
	texts_end = TEXTS;
	reads = 0;
	return memory ? 0 : -1;
}

static int free_memory(void **state)
{
	(void)state;
	free(memory);
	return 0;
}

/* ---- writers -------------------------------------------------------------------------------- */

static void put_slice(uint64_t first, uint64_t count, uint64_t room)
{
	put_word(LABELS, first);
	put_word(LABELS + 8, count);
	put_word(LABELS + 16, room);
}

static void put_pair(uint32_t number, const char *key, const char *value)
{
	put_both(PAIRS + 32 * number, PAIRS + 32 * number + 16, key, value);
}

static void put_map(uint64_t count, uint8_t b, uint64_t buckets, uint64_t old_buckets)
{
	put_word(LABELS, MAP);
	put_word(MAP, count);
	put(MAP + 9, &b, 1);
	put_word(MAP + 16, buckets);
	put_word(MAP + 24, old_buckets);
}

static void put_hash(uint64_t bucket, uint32_t place, uint8_t hash)
{
	put(bucket + place, &hash, 1);
}

static void put_in_bucket(uint64_t bucket, uint32_t place, const char *key, const char *value)
{
	put_hash(bucket, place, TOP_HASH);
	put_both(bucket + 8 + 16 * place, bucket + 136 + 16 * place, key, value);
}

static void fill_bucket(uint64_t bucket)
{
	for (uint32_t i = 0; i < 8; i++)
		put_in_bucket(bucket, i, "key", "value");
}

/* ---- what is read --------------------------------------------------------------------------- */

static struct go_buckets buckets;
static union record *into;

struct abi_fiber_facts *go_labels_to(void)
{
	return &into->facts;
}

struct go_buckets *go_labels_at(void)
{
	return &buckets;
}

static void read_kind(uint32_t kind, union record *record)
{
	memset(record, 0, sizeof(*record));
	into = record;
	go_read_labels(LABELS, kind, &record->facts);
	assert_true(record->facts.label_count <= ABI_FIBER_LABELS);
	assert_true(record->facts.label_bytes <= ABI_FIBER_LABEL_BYTES);
}

/* "key=value key=value", in the order of the record. */
static const char *text_of(const union record *record)
{
	static char text[4096];
	const uint8_t *at = record->facts.labels;
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < record->facts.label_count; i++) {
		size_t value = at[1] == ABI_FIBER_VALUE_CUT ? ABI_FIBER_VALUE_BYTES : at[1];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s=%.*s",
			i ? " " : "", at[0], at + 2, (int)value, at + 2 + at[0]);
		at += 2 + at[0] + value;
	}
	assert_int_equal(at - record->facts.labels, record->facts.label_bytes);
	return text;
}

static void has(uint32_t kind, const char *text, uint32_t flags)
{
	union record record;

	read_kind(kind, &record);
	assert_string_equal(text_of(&record), text);
	assert_int_equal(record.facts.flags, flags);
}

static void map_has(const char *text)
{
	has(ABI_GO_LABELS_MAP, text, 0);
}

static void slice_has(const char *text)
{
	has(ABI_GO_LABELS_SLICE, text, 0);
}

static void map_is_refused(void)
{
	has(ABI_GO_LABELS_MAP, "", ABI_FIBER_UNREADABLE);
}

static void slice_is_refused(void)
{
	has(ABI_GO_LABELS_SLICE, "", ABI_FIBER_UNREADABLE);
}

/* ---- slices --------------------------------------------------------------------------------- */

static void a_slice_is_read(void **state)
{
	(void)state;
	put_pair(0, "handler", "/index");
	put_pair(1, "tenant", "");
	put_slice(PAIRS, 2, 2);
	slice_has("handler=/index tenant=");
}

static void an_empty_slice_has_no_labels(void **state)
{
	(void)state;
	put_slice(0, 0, 0);
	slice_has("");
}

static void no_more_labels_than_fit(void **state)
{
	char key[2] = "a";

	(void)state;
	for (uint32_t i = 0; i < 12; i++, key[0]++)
		put_pair(i, key, "x");
	put_slice(PAIRS, 12, 16);
	has(ABI_GO_LABELS_SLICE, "a=x b=x c=x d=x e=x f=x g=x h=x i=x j=x", ABI_FIBER_CUT);
}

static void a_long_key_is_left_out(void **state)
{
	char key[ABI_FIBER_KEY_BYTES + 2];

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	put_pair(0, key, "x");
	put_pair(1, "short", "y");
	put_slice(PAIRS, 2, 2);
	has(ABI_GO_LABELS_SLICE, "short=y", ABI_FIBER_CUT);
}

static void the_longest_labels_all_fit(void **state)
{
	char key[ABI_FIBER_KEY_BYTES + 1], value[ABI_FIBER_VALUE_BYTES + 1];
	union record record;

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	memset(value, 'v', sizeof(value) - 1);
	key[sizeof(key) - 1] = value[sizeof(value) - 1] = '\0';
	for (uint32_t i = 0; i < ABI_FIBER_LABELS; i++)
		put_pair(i, key, value);
	put_slice(PAIRS, ABI_FIBER_LABELS, ABI_FIBER_LABELS);
	read_kind(ABI_GO_LABELS_SLICE, &record);
	assert_int_equal(record.facts.label_bytes, ABI_FIBER_LABEL_BYTES);
	assert_int_equal(record.facts.flags, 0);
}

static void a_long_value_is_cut(void **state)
{
	char value[ABI_FIBER_VALUE_BYTES + 2];
	union record record;

	(void)state;
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	put_pair(0, "key", value);
	put_slice(PAIRS, 1, 1);
	read_kind(ABI_GO_LABELS_SLICE, &record);
	assert_int_equal(record.facts.flags, ABI_FIBER_CUT);
	assert_int_equal(record.facts.labels[1], ABI_FIBER_VALUE_CUT);
	assert_int_equal(record.facts.label_bytes, 2 + 3 + ABI_FIBER_VALUE_BYTES);
}

static void an_empty_key_is_no_label(void **state)
{
	(void)state;
	put_pair(0, "", "x");
	put_pair(1, "a", "y");
	put_slice(PAIRS, 2, 2);
	slice_has("a=y");
}

/* The text of a string may be in a page that nobody has touched yet. */
static void text_that_is_not_mapped_loses_its_label_only(void **state)
{
	(void)state;
	put_pair(0, "a", "x");
	put_pair(1, "b", "y");
	put_string(PAIRS + 16, 8, 5);
	put_slice(PAIRS, 2, 2);
	has(ABI_GO_LABELS_SLICE, "b=y", ABI_FIBER_UNREADABLE);
}

static void a_slice_that_is_none_is_refused(void **state)
{
	static const struct {
		uint64_t first, count, room;
	} forged[] = {
		{ PAIRS, GO_LABELS_PLAUSIBLE + 1, UINT64_MAX }, /* huge */
		{ PAIRS, UINT64_MAX, UINT64_MAX },
		{ PAIRS, 2, 1 }, /* longer than its room */
		{ 0, 1, 1 }, /* nowhere */
		{ BASE - 8, 1, 1 }, /* not mapped */
		{ BASE + MEMORY_BYTES - 8, 1, 1 }, /* not mapped to its end */
		{ UINT64_MAX - 7, 1, 1 },
	};

	(void)state;
	put_pair(0, "a", "x");
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		put_slice(forged[i].first, forged[i].count, forged[i].room);
		slice_is_refused();
	}
}

static void a_string_that_is_none_refuses_the_set(void **state)
{
	(void)state;
	put_pair(0, "a", "x");
	put_slice(PAIRS, 2, 2);
	put_pair(1, "b", "y");
	put_string(PAIRS + 32, TEXTS, (1 << 20) + 1);
	slice_is_refused();
	put_string(PAIRS + 32, TEXTS, UINT64_MAX);
	slice_is_refused();
	put_pair(1, "b", "y");
	put_string(PAIRS + 48, 0, 1);
	slice_is_refused();
}

/* ---- maps ----------------------------------------------------------------------------------- */

static void a_map_is_read(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 0, "handler", "/index");
	put_in_bucket(BUCKETS, 5, "tenant", "7");
	put_map(2, 0, BUCKETS, 0);
	map_has("handler=/index tenant=7");
}

static void no_map_and_an_empty_map_have_no_labels(void **state)
{
	(void)state;
	map_has("");
	put_map(0, 0, 0, 0);
	map_has("");
}

static void a_map_of_several_buckets_is_read(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 1, "a", "1");
	put_in_bucket(BUCKETS + GO_BUCKET_BYTES, 0, "b", "2");
	put_in_bucket(BUCKETS + 3 * GO_BUCKET_BYTES, 7, "c", "3");
	put_map(3, 2, BUCKETS, 0);
	map_has("a=1 b=2 c=3");
}

static void overflow_buckets_are_read(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 1, "a", "1");
	put_word(BUCKETS + GO_BUCKET_OVERFLOW, OVERFLOW);
	put_in_bucket(OVERFLOW, 0, "b", "2");
	put_in_bucket(BUCKETS + GO_BUCKET_BYTES, 0, "c", "3");
	put_map(3, 1, BUCKETS, 0);
	map_has("a=1 b=2 c=3");
}

/* The old buckets still have the pairs that have not moved. */
static void a_map_that_grows_is_read(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS + 2 * GO_BUCKET_BYTES, 0, "a", "moved");
	put_in_bucket(OLD_BUCKETS, 0, "a", "old");
	put_hash(OLD_BUCKETS, 0, EVACUATED);
	put_in_bucket(OLD_BUCKETS + GO_BUCKET_BYTES, 3, "b", "2");
	put_map(2, 2, BUCKETS, OLD_BUCKETS);
	map_has("a=moved b=2");
}

static void more_buckets_than_are_looked_at_are_cut(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 0, "a", "1");
	put_in_bucket(BUCKETS + 40 * GO_BUCKET_BYTES, 0, "b", "2");
	put_map(2, 6, BUCKETS, 0);
	has(ABI_GO_LABELS_MAP, "a=1", ABI_FIBER_CUT);
}

static void a_chain_that_is_a_circle_ends(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 0, "a", "1");
	put_word(BUCKETS + GO_BUCKET_OVERFLOW, OVERFLOW);
	put_word(OVERFLOW + GO_BUCKET_OVERFLOW, OVERFLOW);
	put_map(2, 0, BUCKETS, 0);
	has(ABI_GO_LABELS_MAP, "a=1", ABI_FIBER_CUT);
	/* Full ones: the count ends it. */
	fill_bucket(OVERFLOW);
	put_map(GO_LABELS_PLAUSIBLE, 0, BUCKETS, 0);
	reads = 0;
	put_word(BUCKETS + GO_BUCKET_OVERFLOW, BUCKETS);
	has(ABI_GO_LABELS_MAP, "a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1 a=1", ABI_FIBER_CUT);
	assert_in_range(reads, 1, 2 + GO_BUCKETS * (2 + 4 * GO_BUCKET_PAIRS));
}

static void fewer_pairs_than_the_map_counts_are_refused(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 0, "a", "1");
	put_map(2, 0, BUCKETS, 0);
	map_is_refused();
}

static void a_map_that_is_none_is_refused(void **state)
{
	(void)state;
	put_in_bucket(BUCKETS, 0, "a", "1");
	put_map(GO_LABELS_PLAUSIBLE + 1, 0, BUCKETS, 0);
	map_is_refused();
	put_map(UINT64_MAX, 0, BUCKETS, 0);
	map_is_refused();
	put_map(1, GO_MAP_B_MAX + 1, BUCKETS, 0);
	map_is_refused();
	put_map(1, 255, BUCKETS, 0);
	map_is_refused();
	put_map(1, 0, 0, 0);
	map_is_refused();
	put_map(1, 0, 8, 0);
	map_is_refused();
	put_map(1, 0, UINT64_MAX - 15, 0);
	map_is_refused();
	put_map(1, 0, BASE + MEMORY_BYTES - 64, 0);
	put_hash(BASE + MEMORY_BYTES - 64, 7, TOP_HASH);
	map_is_refused();
	put_word(LABELS, 1);
	map_is_refused();
}

/* Any bytes: no read is out of bounds (the sanitizers look), and each ends. */
static void garbage_does_no_harm(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	union record record;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		for (uint64_t at = LABELS; at < BUCKETS + 4096; at += 8) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			/* Small numbers and addresses in the memory, which lead further. */
			put_word(at, seed >> 62 == 0   ? seed >> 32 & 15
				     : seed >> 62 == 1 ? BASE + (seed >> 32 & 0x3fff)
				     : seed >> 62 == 2 ? BASE + (seed >> 32 & 0x1ff8)
						       : seed);
		}
		reads = 0;
		read_kind(round & 1 ? ABI_GO_LABELS_MAP : ABI_GO_LABELS_SLICE, &record);
		(void)text_of(&record);
		assert_in_range(reads, 1, 2 + GO_BUCKETS * (2 + 4 * GO_BUCKET_PAIRS));
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, empty_memory, free_memory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_slice_is_read),
		CASE(an_empty_slice_has_no_labels),
		CASE(no_more_labels_than_fit),
		CASE(a_long_key_is_left_out),
		CASE(the_longest_labels_all_fit),
		CASE(a_long_value_is_cut),
		CASE(an_empty_key_is_no_label),
		CASE(text_that_is_not_mapped_loses_its_label_only),
		CASE(a_slice_that_is_none_is_refused),
		CASE(a_string_that_is_none_refuses_the_set),
		CASE(a_map_is_read),
		CASE(no_map_and_an_empty_map_have_no_labels),
		CASE(a_map_of_several_buckets_is_read),
		CASE(overflow_buckets_are_read),
		CASE(a_map_that_grows_is_read),
		CASE(more_buckets_than_are_looked_at_are_cut),
		CASE(a_chain_that_is_a_circle_ends),
		CASE(fewer_pairs_than_the_map_counts_are_refused),
		CASE(a_map_that_is_none_is_refused),
		CASE(garbage_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
