/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Structs of C++ and Rust that their users take for text or for a list. */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/arguments/types.h"

struct text_layout {
	uint32_t pointer_off, length_off;
	bool is_text; /* else a list, of which only the length is shown */
	bool is_libcxx; /* ARGUMENT_LIBCXX_STRING: a short text is in the value itself */
};

/*
 * C++: std::string of libstdc++ (not the one before C++11, whose length is elsewhere) and of libc++
 * (not in its alternative layout), and std::string_view. Rust: &str, String, slices and Vec.
 * Returns false for any other type.
 */
bool text_layout_of(struct type *type, struct text_layout *ret_layout);
