/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Reads a goroutine's pprof labels. pprof.Do and SetGoroutineLabels make a new set and then store
 * its address in g.labels, and nobody changes a set that is stored: so the labels are whole at any
 * instruction of the goroutine, also in an NMI. New goroutines inherit the address.
 *
 * Up to Go 1.23 the set is a map[string]string. A map has 2^B buckets of eight pairs, each with a
 * chain of overflow buckets. While it grows it also has its old buckets, with those pairs that have
 * not moved yet. From Go 1.24 on the set is a slice of pairs.
 *
 * All of that memory may be garbage: the program may be hostile, and so may the offsets be, which
 * come from its file.
 */
#include <stdbool.h>

#include "bpf/abi/fiber_facts.h"
#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/thread.bpf.h"
#ifdef __BPF__
#include "bpf/scratch.bpf.h"
#endif

enum {
	GO_LABELS_PLAUSIBLE = 4096, /* a set with more is none */
	GO_LABEL_PLAUSIBLE_BYTES = 1 << 20,
	GO_MAP_B_MAX = 12, /* of GO_LABELS_PLAUSIBLE */
	GO_MAP_SAME_SIZE_GROW = 8, /* in go_map.flags */
	GO_BUCKETS = 16, /* to look at */
	GO_BUCKET_PAIRS = 8,
	GO_MIN_TOP_HASH = 5, /* less: the place is empty, or its pair has moved */
	GO_WORD = 8,
	GO_STRING_BYTES = 16,
	GO_BUCKET_KEYS = GO_BUCKET_PAIRS, /* behind a byte of each pair's hash */
	GO_BUCKET_VALUES = GO_BUCKET_KEYS + GO_BUCKET_PAIRS * GO_STRING_BYTES,
	GO_BUCKET_OVERFLOW = GO_BUCKET_VALUES + GO_BUCKET_PAIRS * GO_STRING_BYTES,
	GO_BUCKET_BYTES = GO_BUCKET_OVERFLOW + GO_WORD,
	GO_LABEL_PLACES = 2048, /* what a place is masked to */
};

/* runtime.hmap */
struct go_map {
	__u64 count;
	__u8 flags, b;
	__u8 unused[6];
	__u64 buckets, old_buckets;
};

struct go_slice {
	__u64 first, count, room;
};

struct go_string {
	__u64 address, bytes;
};

struct go_label {
	struct go_string key, value;
};

_Static_assert(sizeof(struct go_map) == 32, "the head of a map");
_Static_assert(sizeof(struct go_label) == 32, "an element of the slice");
_Static_assert((int)ABI_FIBER_LABEL_BYTES <= (int)GO_LABEL_PLACES, "no place is masked away");

static __always_inline bool go_string_is_plausible(const struct go_string *s)
{
	return s->bytes <= GO_LABEL_PLAUSIBLE_BYTES && (s->address || !s->bytes);
}

/* Keeps the compiler from finding another way to the value, whose limits the verifier then
 * forgets. */
static __always_inline __u64 go_limited(__u64 value, __u64 limit)
{
	asm volatile("" : "+r"(value));
	return value > limit ? limit : value;
}

/*
 * Where labels are read to: in BPF the scratch memory, of a test its own. Each function that looks
 * them up is a global one, which the verifier follows once: inlined into each other's loops they
 * would be too much for it. Such functions take no pointers on older kernels.
 */
#ifdef __BPF__
/* Nothing may be added to the address before it is known not to be NULL. */
static __always_inline struct abi_fiber_facts *go_labels_to(void)
{
	struct scratch *s = scratch_of_cpu();

	if (!s)
		return NULL;
	asm volatile("" : "+r"(s));
	return (struct abi_fiber_facts *)&s->walk.record;
}

static __always_inline struct go_buckets *go_labels_at(void)
{
	struct scratch *s = scratch_of_cpu();

	if (!s)
		return NULL;
	asm volatile("" : "+r"(s));
	return &s->go_buckets;
}
#else
struct abi_fiber_facts *go_labels_to(void);
struct go_buckets *go_labels_at(void);
#endif

int go_take_label(__u64 key_at, __u64 value_at);
int go_take_bucket(void);
int go_take_slice(__u64 labels);
int go_take_map(__u64 labels);

/* Reads LABEL's text to its place. Returns 0 or an error. */
static __always_inline long go_read_texts(const struct go_label *label, __u64 key_bytes,
	__u64 value_bytes, __u32 at, struct abi_fiber_facts *to)
{
	__u8 *place = to->labels + (at & (GO_LABEL_PLACES - 1));

	if (read_user(place + sizeof(struct abi_fiber_label), key_bytes, label->key.address) ||
		read_user(place + sizeof(struct abi_fiber_label) + key_bytes, value_bytes,
			label->value.address))
		return -1;
	place[0] = key_bytes;
	place[1] = label->value.bytes > ABI_FIBER_VALUE_BYTES ? ABI_FIBER_VALUE_CUT : value_bytes;
	return 0;
}

static __always_inline void go_label_add(const struct go_label *label, struct abi_fiber_facts *to)
{
	__u64 key_bytes = go_limited(label->key.bytes, ABI_FIBER_KEY_BYTES);
	__u64 value_bytes = go_limited(label->value.bytes, ABI_FIBER_VALUE_BYTES);
	__u32 at = to->label_bytes;

	if (!label->key.bytes)
		return;
	if (label->key.bytes > ABI_FIBER_KEY_BYTES || to->label_count >= ABI_FIBER_LABELS) {
		to->flags |= ABI_FIBER_CUT;
		return;
	}
	if (go_read_texts(label, key_bytes, value_bytes, at, to)) {
		to->flags |= ABI_FIBER_UNREADABLE;
		return;
	}
	if (label->value.bytes > ABI_FIBER_VALUE_BYTES)
		to->flags |= ABI_FIBER_CUT;
	to->label_bytes = at + sizeof(struct abi_fiber_label) + key_bytes + value_bytes;
	to->label_count++;
}

/*
 * Adds the label whose strings are at these addresses. Returns 0, or -1 if they are none: a label
 * whose text cannot be read is left out. The text may be in a page that nobody has touched.
 */
__attribute__((noinline)) int go_take_label(__u64 key_at, __u64 value_at)
{
	struct abi_fiber_facts *to = go_labels_to();
	struct go_label label;

	if (!to || read_user(&label.key, sizeof(label.key), key_at) ||
		read_user(&label.value, sizeof(label.value), value_at))
		return -1;
	if (!go_string_is_plausible(&label.key) || !go_string_is_plausible(&label.value))
		return -1;
	go_label_add(&label, to);
	return 0;
}

/* Each of these returns 0, or -1 if there is no set of labels. */
__attribute__((noinline)) int go_take_slice(__u64 labels)
{
	struct abi_fiber_facts *to = go_labels_to();
	struct go_slice slice;

	if (!to || read_user(&slice, sizeof(slice), labels))
		return -1;
	if (!slice.count)
		return 0;
	if (slice.count > GO_LABELS_PLAUSIBLE || slice.count > slice.room || !slice.first)
		return -1;
	if (slice.count > ABI_FIBER_LABELS)
		to->flags |= ABI_FIBER_CUT;
	for (__u32 i = 0; i < ABI_FIBER_LABELS && i < slice.count; i++) {
		__u64 place = slice.first + i * sizeof(struct go_label);

		if (go_take_label(place, place + GO_STRING_BYTES))
			return -1;
	}
	return 0;
}

/* Takes the labels of the bucket at which the reading is, until none are missing. */
__attribute__((noinline)) int go_take_bucket(void)
{
	struct go_buckets *at = go_labels_at();
	__u64 hashes;

	if (!at || read_user(&hashes, sizeof(hashes), at->bucket))
		return -1;
	for (__u32 i = 0; i < GO_BUCKET_PAIRS && at->pairs; i++, hashes >>= 8) {
		__u64 place = at->bucket + (__u64)i * GO_STRING_BYTES;

		if ((hashes & 0xff) < GO_MIN_TOP_HASH)
			continue;
		if (go_take_label(place + GO_BUCKET_KEYS, place + GO_BUCKET_VALUES))
			return -1;
		at->pairs--;
	}
	return 0;
}

/* Sets the next bucket of the arrays. Returns false at the end. */
static __always_inline bool go_next_bucket(struct go_buckets *at)
{
	if (at->at >= at->count) {
		if (!at->old)
			return false;
		at->first = at->old;
		at->count = at->old_count;
		at->at = 0;
		at->old = 0;
	}
	at->bucket = at->first + (__u64)at->at * GO_BUCKET_BYTES;
	at->at++;
	return true;
}

/*
 * Fewer pairs than the map counts are not the program's labels. More buckets than are looked at may
 * be.
 */
static __always_inline int go_take_buckets(struct go_buckets *at, struct abi_fiber_facts *to)
{
	for (__u32 i = 0; i < GO_BUCKETS; i++) {
		if (!at->bucket && !go_next_bucket(at))
			return -1;
		if (go_take_bucket())
			return -1;
		if (!at->pairs)
			return 0;
		if (read_user(&at->bucket, sizeof(at->bucket), at->bucket + GO_BUCKET_OVERFLOW))
			return -1;
	}
	to->flags |= ABI_FIBER_CUT;
	return 0;
}

__attribute__((noinline)) int go_take_map(__u64 labels)
{
	struct abi_fiber_facts *to = go_labels_to();
	struct go_buckets *at = go_labels_at();
	__u64 address = 0;
	struct go_map map;

	if (!to || !at || read_user(&address, sizeof(address), labels))
		return -1;
	if (!address)
		return 0;
	if (read_user(&map, sizeof(map), address))
		return -1;
	if (!map.count)
		return 0;
	if (map.count > GO_LABELS_PLAUSIBLE || map.b > GO_MAP_B_MAX || !map.buckets)
		return -1;
	at->first = map.buckets;
	at->old = map.old_buckets;
	at->bucket = 0;
	at->pairs = map.count;
	at->at = 0;
	at->count = 1U << (map.b & 31);
	at->old_count = map.flags & GO_MAP_SAME_SIZE_GROW ? at->count : (at->count + 1) / 2;
	return go_take_buckets(at, to);
}

/*
 * Adds the labels at LABELS to TO, which is go_labels_to() and has none. If the set is none, there
 * are none.
 */
static __always_inline void go_read_labels(__u64 labels, __u32 kind, struct abi_fiber_facts *to)
{
	int error = kind == ABI_GO_LABELS_MAP ? go_take_map(labels) : go_take_slice(labels);

	if (!error)
		return;
	to->flags = (to->flags & ~ABI_FIBER_CUT) | ABI_FIBER_UNREADABLE;
	to->label_count = 0;
	to->label_bytes = 0;
}
