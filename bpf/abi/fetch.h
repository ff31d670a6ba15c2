/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Values that a probe reads when a function is entered or left: what bpf/probes/fetch.bpf.h and
 * user space share. A fetch begins with a register and follows up to eight steps to the value. The
 * fetches of one site are consecutive in the map `fetches`, and each has a place of its own in the
 * bytes that they fill, which user space has chosen.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_FETCHES = 32, /* of one site, at most */
	ABI_FETCH_STEPS = 8,
	ABI_FETCH_VALUE_BYTES = 256, /* of one value, at most */
	ABI_FETCHED_BYTES = 480, /* of all values of one site, at most */
	ABI_FETCH_PLACES = 512, /* what a place is masked to */
	ABI_FETCHES_OF_ALL = 65536, /* the map has as many as user space asks for */
};

/* A register is a word of the kernel's struct pt_regs (x86_64) or struct user_pt_regs (aarch64). */
#if defined(__TARGET_ARCH_arm64) || (!defined(__BPF__) && defined(__aarch64__))
enum { ABI_FETCH_PC = 32, ABI_FETCH_SP = 31, ABI_FETCH_REGISTERS = 33 };
#else
enum { ABI_FETCH_PC = 16, ABI_FETCH_SP = 19, ABI_FETCH_REGISTERS = 20 };
#endif

enum abi_fetch_kind {
	/* The register itself if there are no steps, else `size` bytes at the address. */
	ABI_FETCH_PLAIN = 0,
	/* As many elements at the address as an earlier fetch of the same site says. */
	ABI_FETCH_ARRAY,
	/* Bytes at the address up to a NUL, which is there unless the value was cut. */
	ABI_FETCH_C_STRING,
	/*
	 * The address is that of a Go type (runtime._type). One byte with its flags, then the bytes
	 * of its name as the runtime encodes them, as many as fit.
	 */
	ABI_FETCH_GO_TYPE_NAME,
};

struct abi_fetch {
	abi_u8 kind; /* enum abi_fetch_kind */
	abi_u8 origin; /* register */
	abi_u8 step_count;
	abi_u8 dereferences; /* bit N: step N replaces the address by the word that it points to */
	abi_u32 at; /* offset of the value in the bytes; a multiple of 8 */
	abi_u32 size; /* bytes, at most ABI_FETCH_VALUE_BYTES */
	/* Of ABI_FETCH_ARRAY. The count is the value, of 8 bytes, of fetch `length_of` at
	 * `length_at`. */
	abi_u32 element_bytes, length_of, length_at;
	abi_u32 offsets[ABI_FETCH_STEPS]; /* signed; added to the address before its dereference */
	/* Of ABI_FETCH_GO_TYPE_NAME: the file's types (runtime.types), signed, from the entry. */
	abi_u64 types_off;
	abi_u64 types_bytes;
};

/* The fetches of one site. */
struct abi_fetch_set {
	abi_u32 first; /* in the map `fetches` */
	abi_u32 count; /* 0 = there are none */
	abi_u32 bytes; /* that they fill of abi_fetched.bytes */
	abi_u32 reserved;
};

enum abi_fetch_status {
	ABI_FETCHED_NOT = 0, /* not attempted */
	ABI_FETCHED_OK,
	ABI_FETCHED_CUT, /* there is more than `size` bytes */
	ABI_FETCHED_UNREADABLE, /* that memory is not mapped, or has not been read from its file */
};

struct abi_fetched {
	abi_u8 status[ABI_FETCHES]; /* enum abi_fetch_status */
	abi_u8 bytes[ABI_FETCHED_BYTES];
};

/* What a site's fetches are read into. The verifier does not add up a place and a size. */
struct abi_fetch_room {
	struct abi_fetched fetched;
	abi_u8 spare[ABI_FETCH_PLACES + ABI_FETCH_VALUE_BYTES - ABI_FETCHED_BYTES];
};

_Static_assert(sizeof(struct abi_fetch) == 72, "map value's layout");
_Static_assert(sizeof(struct abi_fetched) == ABI_FETCHES + ABI_FETCHED_BYTES, "record's layout");
_Static_assert(ABI_FETCHES % 8 == 0, "words in the bytes are aligned");
