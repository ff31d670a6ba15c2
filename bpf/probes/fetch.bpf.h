/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Reads arguments and results at a function's entry or return, as user space has described them
 * (bpf/abi/fetch.h). Nothing here trusts the description: it may come from a foreign file. What
 * cannot be read gets a status that says so, and the values beside it are read all the same.
 *
 * All but fetch_all() also compiles natively: there a test supplies read_user(), fetch_string() and
 * fetch_register().
 */
#include <stdbool.h>
#include <linux/types.h>

#include "bpf/abi/fetch.h"
#include "bpf/read_user.bpf.h"

#define FETCH_INLINE static inline __attribute__((always_inline))

enum {
	/* runtime._type, in all versions of Go. */
	FETCH_GO_TYPE_FLAGS = 20,
	FETCH_GO_TYPE_NAME = 40, /* 32 bits, signed: offset from runtime.types */
	FETCH_PLACES = ABI_FETCH_PLACES - 8, /* a mask: within the bytes, and aligned */
};

#ifdef __BPF__
/* Copies up to a NUL. Returns the bytes with the NUL, SIZE if there is none before; or an error. */
static __always_inline long fetch_string(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user_str(to, size, (const void *)address);
}

/* REGISTERS is the program's context, of which the verifier lets no variable part be loaded. */
static __always_inline long fetch_register(const void *registers, __u32 number, __u64 *ret_value)
{
	return bpf_probe_read_kernel(
		ret_value, sizeof(*ret_value), (const __u64 *)registers + number);
}
#else
long fetch_string(void *to, __u32 size, __u64 address);
long fetch_register(const void *registers, __u32 number, __u64 *ret_value);
#endif

/* Follows FETCH's steps from its register to an address. */
FETCH_INLINE bool fetch_address(
	const void *registers, const struct abi_fetch *fetch, __u64 *ret_address)
{
	__u64 address = 0;

	if (fetch->origin >= ABI_FETCH_REGISTERS ||
		fetch_register(registers, fetch->origin, &address))
		return false;
	for (__u32 i = 0; i < ABI_FETCH_STEPS; i++) {
		if (i >= fetch->step_count)
			break;
		address += (__u64)(__s64)(__s32)fetch->offsets[i];
		if (fetch->dereferences & (1U << i) &&
			read_user(&address, sizeof(address), address))
			return false;
	}
	*ret_address = address;
	return true;
}

/*
 * Kernels before 6.2 do not follow a check that the compiler has merged with another one: what is
 * known of the variable must be in one register.
 */
#define FETCH_KEEP(variable) asm volatile("" : "+r"(variable))

/* The size of FETCH's value, or 0 if user space wrote one that is too large. */
FETCH_INLINE __u32 fetch_size(const struct abi_fetch *fetch)
{
	__u32 size = fetch->size;

	if (size > ABI_FETCH_VALUE_BYTES)
		size = 0;
	FETCH_KEEP(size);
	return size;
}

FETCH_INLINE __u32 fetch_read_plain(const struct abi_fetch *fetch, void *value, __u64 address)
{
	__u32 size = fetch_size(fetch);

	if (!size || read_user(value, size, address))
		return ABI_FETCHED_UNREADABLE;
	return ABI_FETCHED_OK;
}

FETCH_INLINE __u32 fetch_read_array(
	struct abi_fetch_room *to, const struct abi_fetch *fetch, void *value, __u64 address)
{
	__u32 length_of = fetch->length_of, size = fetch_size(fetch), status = ABI_FETCHED_OK;
	__u32 element = fetch->element_bytes;
	__u64 count, bytes;

	if (length_of >= ABI_FETCHES || to->fetched.status[length_of] != ABI_FETCHED_OK || !element)
		return ABI_FETCHED_UNREADABLE;
	count = *(const __u64 *)&to->fetched.bytes[fetch->length_at & FETCH_PLACES];
	if (!count)
		return ABI_FETCHED_OK;
	bytes = count * element;
	if (count > size || bytes > size) {
		bytes = size;
		status = ABI_FETCHED_CUT;
	}
	FETCH_KEEP(bytes);
	if (bytes > ABI_FETCH_VALUE_BYTES || read_user(value, (__u32)bytes, address))
		return ABI_FETCHED_UNREADABLE;
	return status;
}

FETCH_INLINE __u32 fetch_read_string(const struct abi_fetch *fetch, char *value, __u64 address)
{
	__u32 size = fetch_size(fetch);
	long read;

	if (!size)
		return ABI_FETCHED_UNREADABLE;
	read = fetch_string(value, size, address);
	if (read < 0)
		return ABI_FETCHED_UNREADABLE;
	if (!read) /* an empty string, before Linux 6.2 */
		*value = 0;
	return read < (long)size ? ABI_FETCHED_OK : ABI_FETCHED_CUT;
}

/* ENTRY_PC = 0: not known. */
FETCH_INLINE __u32 fetch_read_type_name(
	const struct abi_fetch *fetch, char *value, __u64 type, __u64 entry_pc)
{
	__u64 types = entry_pc + fetch->types_off, left;
	__u32 size = fetch_size(fetch);
	__u32 name_off = 0;

	if (!entry_pc || !size || type - types >= fetch->types_bytes ||
		read_user(value, 1, type + FETCH_GO_TYPE_FLAGS) ||
		read_user(&name_off, sizeof(name_off), type + FETCH_GO_TYPE_NAME) || !name_off ||
		name_off >= fetch->types_bytes)
		return ABI_FETCHED_UNREADABLE;
	left = fetch->types_bytes - name_off;
	size = left < size - 1 ? (__u32)left : size - 1;
	FETCH_KEEP(size);
	if (size > ABI_FETCH_VALUE_BYTES - 1 || read_user(value + 1, size, types + name_off))
		return ABI_FETCHED_UNREADABLE;
	return ABI_FETCHED_OK;
}

FETCH_INLINE __u32 fetch_read(struct abi_fetch_room *to, const struct abi_fetch *fetch,
	const void *registers, __u64 entry_pc)
{
	abi_u8 *value = &to->fetched.bytes[fetch->at & FETCH_PLACES];
	__u64 address = 0;

	if (!fetch_address(registers, fetch, &address))
		return ABI_FETCHED_UNREADABLE;
	switch (fetch->kind) {
	case ABI_FETCH_ARRAY:
		return fetch_read_array(to, fetch, value, address);
	case ABI_FETCH_C_STRING:
		return fetch_read_string(fetch, (char *)value, address);
	case ABI_FETCH_GO_TYPE_NAME:
		return fetch_read_type_name(fetch, (char *)value, address, entry_pc);
	}
	if (!fetch->step_count) {
		*(__u64 *)value = address;
		return ABI_FETCHED_OK;
	}
	return fetch_read_plain(fetch, value, address);
}

#ifdef __BPF__
#include <bpf/bpf_helpers.h>

/* Each probe's user space sets the number of elements before the program is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_FETCHES_OF_ALL);
	__type(key, __u32);
	__type(value, struct abi_fetch);
} fetches SEC(".maps");

/*
 * Reads what SET says into TO, with the registers of CTX (a program's context at a user function).
 * ENTRY_PC is the running function's entry: at a return the one of the open call; 0 if it is not
 * known, and then no type has a name. Each fetch of the set has a status afterwards.
 */
static __always_inline void fetch_all(
	const void *ctx, const struct abi_fetch_set *set, __u64 entry_pc, struct abi_fetch_room *to)
{
	__u32 first = set->first, count = set->count;

#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < ABI_FETCHES; i++) {
		__u32 key = first + i;
		const struct abi_fetch *fetch;

		if (i >= count)
			break;
		fetch = bpf_map_lookup_elem(&fetches, &key);
		to->fetched.status[i] =
			fetch ? fetch_read(to, fetch, ctx, entry_pc) : ABI_FETCHED_NOT;
	}
}
#endif
