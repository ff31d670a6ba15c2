/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind pages without packed rules, for --test-without=packed-rules: the same page with each rule
 * in the 12 bytes of its wide form. BPF reads both forms in every page, so nothing else changes.
 */
#include "bpf/abi/unwind.h"

/* Returns a copy of PAGE, which unwind_page_check() accepts; the caller frees it. NULL = ENOMEM. */
struct abi_unwind_page *wide_page_of(const struct abi_unwind_page *page);
