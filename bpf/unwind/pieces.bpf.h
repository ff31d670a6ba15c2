/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The pieces of stack in an unfinished sample (struct abi_unwind_rest): where they are, and reading
 * them.
 */
#include "bpf/unwind/regs.bpf.h"
#include "bpf/stack.bpf.h"
#include "bpf/unwind/lookup.bpf.h"

enum {
	UNFINISHED_MAX_LINKS = 32, /* frame pointers to follow to another stack */
	UNFINISHED_HOLE_BYTES = 32 << 10, /* a larger one ends the stack */
	UNFINISHED_IDS = 256, /* a power of 2: at least ABI_DEEP_CHUNKS */
	UNFINISHED_ALL_CHUNKS = ABI_UNFINISHED_CHUNKS + ABI_DEEP_CHUNKS,
};

/* struct abi_unfinished with room for the longest record. */
struct unfinished_record {
	union {
		struct abi_tick tick;
		struct abi_switch_out switch_out;
	};
	struct abi_unwind_rest rest;
	abi_u8 stack[ABI_UNFINISHED_STACK_BYTES];
	abi_u64 deep[UNFINISHED_IDS]; /* of ABI_DEEP_CHUNKS; shipped if all of `stack` is */
	struct abi_chunk chunk; /* the last one read; shipped by itself */
	__u32 wanted; /* chunks of the stack that are useful */
	__u32 end; /* of the last bytes of `stack` that could be read */
	struct abi_returns returns; /* of `stack`; shipped by itself */
	__u64 read_end; /* address behind the last chunk that could be read */
};

_Static_assert(offsetof(struct unfinished_record, stack) == sizeof(struct abi_unfinished),
	"as the ABI has it");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct unfinished_record);
} unfinished_records SEC(".maps");

/*
 * Reads chunk I of the two stacks into the CPU's unfinished record. Returns false where they end.
 * A global function, as unwind_frame(): the verifier checks it once, and not for each chunk.
 */
__noinline int unwind_read_piece(__u32 i)
{
	__u32 key = scratch_slot(), at = i * ABI_UNFINISHED_CHUNK_BYTES, room;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	__u64 address;

	if (!to || i >= ABI_UNFINISHED_CHUNKS)
		return false;
	room = to->rest.other_room;
	address = at < room ? to->rest.other_address + at : to->rest.stack_address + (at - room);
	if (!read_user(to->stack + at, ABI_UNFINISHED_CHUNK_BYTES, address)) {
		to->end = at + ABI_UNFINISHED_CHUNK_BYTES;
		return true;
	}
	if (at >= room) {
		if (at >= to->end + UNFINISHED_HOLE_BYTES)
			return false;
		__builtin_memset(to->stack + at, 0xff, ABI_UNFINISHED_CHUNK_BYTES);
		return true;
	}
	to->end = at + ABI_UNFINISHED_CHUNK_BYTES;
	to->rest.other_bytes = at < to->rest.other_bytes ? at : to->rest.other_bytes;
	return true;
}

/*
 * Reads the pieces that `rest` describes into the CPU's unfinished record: that of the other
 * stack into the room reserved for it, then the stack itself, up to its end or LIMIT bytes in all.
 * Chunks never cross a page. other_bytes becomes the readable bytes up to the first gap. The stack
 * may have pages that were never touched, in the middle of large local variables: they are filled
 * with ones, which are neither code nor an address. Returns the bytes, room included.
 */
__noinline int unwind_read_stacks(__u32 limit)
{
	__u32 i, key = scratch_slot();
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);

	if (!to)
		return 0;
	to->end = 0;
	for (i = 0; i < ABI_UNFINISHED_CHUNKS; i++)
		if ((i + 1) * ABI_UNFINISHED_CHUNK_BYTES > limit || !unwind_read_piece(i))
			break;
	/* A deeper stack goes on behind the hole. */
	return i == ABI_UNFINISHED_CHUNKS && limit > ABI_UNFINISHED_STACK_BYTES
		       ? ABI_UNFINISHED_STACK_BYTES
		       : *(volatile __u32 *)&to->end;
}

/* ---- the outer part of a deep stack --------------------------------------------------------- */

enum unwind_chunk { UNWIND_CHUNK_END, UNWIND_CHUNK_SHIPPED, UNWIND_CHUNK_NEW };

enum { CHUNKS_AT_ONCE = 16 };

enum { UNFINISHED_CHUNK_RECORD_BYTES = 24 + sizeof(struct abi_chunk) /* in the ring */ };

static __always_inline __u64 *unwind_chunk_slot(__u64 id)
{
	__u32 slot = id & (ABI_SEEN_SLOTS - 1);

	return bpf_map_lookup_elem(&seen, &slot);
}

/* The tag of chunk ID in the table of what was shipped: valid for about a second. */
static __always_inline __u64 unwind_chunk_tag(__u64 id)
{
	return stack_tag(id, ~shared.unwind_epoch);
}

/*
 * Reads the stack's chunk NUMBER behind unfinished_record.stack and sets its id in `deep`. Returns
 * an enum unwind_chunk. A global function, as unwind_frame().
 */
__noinline int unwind_read_chunk(__u32 number)
{
	__u32 key = scratch_slot();
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	__u64 address, id, *shipped;

	if (!to || number >= ABI_DEEP_CHUNKS)
		return UNWIND_CHUNK_END;
	address = to->rest.stack_address + ABI_UNFINISHED_STACK_BYTES - to->rest.other_room +
		  number * ABI_UNFINISHED_CHUNK_BYTES;
	if (read_user(to->chunk.bytes, ABI_UNFINISHED_CHUNK_BYTES, address)) {
		if (address >= *(volatile __u64 *)&to->read_end + UNFINISHED_HOLE_BYTES)
			return UNWIND_CHUNK_END;
		__builtin_memset(to->chunk.bytes, 0xff, ABI_UNFINISHED_CHUNK_BYTES);
	} else {
		to->read_end = address + ABI_UNFINISHED_CHUNK_BYTES;
	}
	id = address;
	for (__u32 i = 0; i < ABI_UNFINISHED_CHUNK_BYTES / 8; i++)
		id = stack_hash_frame(id, ((const __u64 *)to->chunk.bytes)[i]);
	id = stack_hash_end(id, 0, ABI_CHUNK);
	to->chunk.id = id;
	/* Older verifiers forget the bound of a number that was on the stack. */
	barrier_var(number);
	to->deep[number & (UNFINISHED_IDS - 1)] = id;
	shipped = unwind_chunk_slot(id);
	if (shipped && *(volatile __u64 *)shipped == unwind_chunk_tag(id))
		return UNWIND_CHUNK_SHIPPED;
	return UNWIND_CHUNK_NEW;
}

/*
 * Reads chunks up to one that is not UNWIND_CHUNK_SHIPPED, or CHUNKS_AT_ONCE. Returns what the last
 * one is. A global function: the verifier follows these, and not all that a stack may have.
 */
__noinline int unwind_pass_chunks(void)
{
	__u32 key = scratch_slot();
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	int is = UNWIND_CHUNK_SHIPPED;

	if (!to)
		return UNWIND_CHUNK_END;
	for (__u32 i = 0; i < CHUNKS_AT_ONCE && is == UNWIND_CHUNK_SHIPPED; i++) {
		__u32 count = *(volatile __u16 *)&to->rest.deep_count;

		if (count >= to->wanted)
			return UNWIND_CHUNK_END;
		is = unwind_read_chunk(count);
		if (is == UNWIND_CHUNK_SHIPPED)
			to->rest.deep_count = count + 1;
	}
	return is;
}

/*
 * Reads chunks up to one that has to be shipped, which is left in unfinished_record.chunk. Returns
 * whether there is one, and an allowance for it: a stack that is too deep for that is cut, and has
 * more chunks in its next sample.
 */
__noinline int unwind_next_chunk(void)
{
	struct unwind_walk *walk = unwind_walk_of();
	int is = UNWIND_CHUNK_SHIPPED;

	if (!walk)
		return 0;
	for (__u32 i = 0; i < ABI_DEEP_CHUNKS && is == UNWIND_CHUNK_SHIPPED; i += CHUNKS_AT_ONCE)
		is = unwind_pass_chunks();
	return is == UNWIND_CHUNK_NEW && walk->allowance >= UNFINISHED_CHUNK_RECORD_BYTES;
}

/* Notes that the chunk was shipped, or the ERROR. Returns 0. */
__noinline int unwind_chunk_sent(__u64 error)
{
	__u32 key = scratch_slot();
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	struct unwind_walk *walk = unwind_walk_of();
	__u64 *shipped;

	if (!to || !walk)
		return 0;
	if (error) {
		to->wanted = 0;
		return 0;
	}
	walk->allowance -= UNFINISHED_CHUNK_RECORD_BYTES;
	to->rest.deep_count++;
	shipped = unwind_chunk_slot(to->chunk.id);
	if (shipped)
		*(volatile __u64 *)shipped = unwind_chunk_tag(to->chunk.id);
	return 0;
}

/* ---- return addresses ----------------------------------------------------------------------- */

enum {
	RETURNS_NEAR_BYTES = 1 << 20, /* this close to sp is data */
	RETURNS_MIN_CODE = 1 << 16,
	RETURNS_AT_ONCE = 16,
};

/* Whether WORD, on a stack at SP, may be an address of code. */
static __always_inline bool unwind_may_be_code(__u64 word, __u64 sp)
{
	return word >= RETURNS_MIN_CODE && !(word >> 47) &&
	       word - sp + RETURNS_NEAR_BYTES > 2 * RETURNS_NEAR_BYTES;
}

/* Adds WORD of the stack, which has ADDRESS, if it follows a call. A global function, as above. */
__noinline int unwind_note_return(__u32 word, __u64 address)
{
	__u32 key = scratch_slot(), count;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	__u64 code = 0;

	if (!to)
		return 0;
	count = *(volatile __u32 *)&to->returns.count;
	if (count >= ABI_RETURNS || read_user(&code, sizeof(code), address - sizeof(code)))
		return 0;
	if (!unwind_is_call(code))
		return 0;
	/* Older verifiers forget the bound of a number that was on the stack. */
	barrier_var(count);
	to->returns.of[count & (ABI_RETURNS - 1)].word = word;
	to->returns.of[count & (ABI_RETURNS - 1)].code = code;
	to->returns.count = count + 1;
	return 0;
}

/*
 * Looks for return addresses in RETURNS_AT_ONCE words of the stack, from word FIRST on, as far as
 * they are among the BYTES that were read. Returns how many words it looked at. A global function,
 * as above.
 */
__noinline int unwind_find_some_returns(__u32 first, __u32 bytes)
{
	__u32 key = scratch_slot(), i;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);
	__u32 begin;

	if (!to)
		return 0;
	begin = to->rest.other_room + (__u32)(to->rest.sp - to->rest.stack_address) + first * 8;
	for (i = 0; i < RETURNS_AT_ONCE; i++) {
		__u32 at = begin + i * 8;
		__u64 word;

		if (at > ABI_UNFINISHED_STACK_BYTES - 8 || at + 8 > bytes ||
			*(volatile __u32 *)&to->returns.count >= ABI_RETURNS)
			break;
		word = *(const __u64 *)(to->stack + (at & ~7U));
		if (unwind_may_be_code(word, to->rest.sp))
			unwind_note_return(first + i, word);
	}
	return i;
}

/* Looks for return addresses in the BYTES that were read of both stacks. */
__noinline int unwind_find_returns(__u32 bytes)
{
	__u32 key = scratch_slot(), words = 0;
	struct unfinished_record *to = bpf_map_lookup_elem(&unfinished_records, &key);

	if (!to)
		return 0;
	to->returns.count = 0;
	for (__u32 i = 0; i < ABI_RETURN_WORDS; i += RETURNS_AT_ONCE) {
		int found = unwind_find_some_returns(i, bytes);

		words += found;
		if (found != RETURNS_AT_ONCE)
			break;
	}
	to->returns.words = words;
	return 0;
}

/*
 * Follows frame pointers from FP on stack [LOW, HIGH]. Returns the first one that is not on that
 * stack, 0 if there is none.
 */
__noinline __u64 unwind_fp_leaves(__u64 fp, __u64 low, __u64 high)
{
	__u64 next = fp;

	for (int i = 0; i < UNFINISHED_MAX_LINKS; i++) {
		if (next < low || next > high)
			return next & 7 ? 0 : next;
		if (read_user(&next, sizeof(next), next))
			return 0;
	}
	return 0;
}

static __always_inline __u32 unwind_chunks_of(__u64 bytes, __u32 max)
{
	if (bytes > max * ABI_UNFINISHED_CHUNK_BYTES)
		return max * ABI_UNFINISHED_CHUNK_BYTES;
	return (bytes + ABI_UNFINISHED_CHUNK_BYTES - 1) & ~(ABI_UNFINISHED_CHUNK_BYTES - 1);
}

/*
 * How much stack to read from ADDRESS on. The first thread's stack ends at its arguments: behind
 * them are only strings. For other threads C libraries place thread-local storage behind the stack
 * (which may be less than what is read anyway, as is what lies behind a coroutine's stack).
 */
static __always_inline __u32 unwind_thread_room(struct task_struct *task, __u64 address)
{
	__u64 began = BPF_CORE_READ(task, mm, start_stack) + 8;
	__u64 local = task_thread_pointer(task);
	__u64 end = address + UNFINISHED_ALL_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES;

	if (began > address && began < end)
		end = began;
	if (local > address && local < end)
		end = local;
	return unwind_chunks_of(end - address, UNFINISHED_ALL_CHUNKS);
}
