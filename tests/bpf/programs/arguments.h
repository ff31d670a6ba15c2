/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* What arguments.bpf.c and test_arguments.c share. */
#include "bpf/abi/fetch.h"

enum { ARGUMENT_SITES = 4096 };

struct argument_site {
	struct abi_fetch_set set;
	abi_u64 distance; /* bytes from the function's entry */
};

struct argument_event {
	abi_u32 site;
	abi_u32 padding;
	struct abi_fetch_room room;
};
