/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the owner of trees knows about their numbers, for all forms of output. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer;
struct json;

/* Texts are foreign bytes, and valid until the next question. */
struct trace_names {
	const char *(*function)(void *context, uint32_t number);
	/* Whether that ends in the types of its parameters: `f(int)`, as in C++. */
	bool (*has_parameters)(void *context, uint32_t number);
	/* Where a call is: `/src/main.go:12`, `libfoo.so+0x1234`; "" = not known. */
	const char *(*place)(void *context, uint32_t number);
	/* The name of process PID; "" = not known any more. */
	const char *(*process)(void *context, uint32_t pid);
	/*
	 * What was fetched of a call of FUNCTION, its RESULTS or its arguments: as text, and as a
	 * member of an object. NULL = nothing is fetched.
	 */
	void (*values_text)(void *context, uint32_t function, bool results, const void *payload,
		size_t size, struct buffer *out);
	void (*values_json)(void *context, uint32_t function, bool results, const void *payload,
		size_t size, struct json *j);
	/*
	 * Whether arguments of FUNCTION are fetched, or will be: those of a call that has none are
	 * not known. NULL = nothing is fetched.
	 */
	bool (*has_values)(void *context, uint32_t function);
	void *context;
	uint64_t real_ns; /* what to add to CLOCK_MONOTONIC for the time since 1970 */
};
