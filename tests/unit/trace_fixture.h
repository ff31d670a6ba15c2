/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Events of traced calls, and what is made of them. Include in one file of a test program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/trace/trace_json.h"
#include "agent/trace/trace_summary.h"
#include "agent/trace/trace_text.h"
#include "agent/trace/trace_trees.h"
#include "base/cleanup.h"

enum { TEXT_BYTES = 16 << 20, PID = 70, TID = 71, GOID = 9 };

struct fixture {
	struct trace_trees trees;
	struct trace_summary summary;
	struct buffer text;
	struct trace_names names; /* `names`, unless the test sets others */
	bool json; /* trees as JSON */
	struct abi_trace_event next; /* task, tree, time and sequence of the next event */
	char payload[64]; /* of the last tree's call `seen_call` */
	size_t seen_call;
	/* Of the last tree. */
	uint64_t lost;
	unsigned int parts;
};

/* ---- names ---------------------------------------------------------------------------------- */

static const char *name_function(void *context, uint32_t number)
{
	static const char *const names[] = { "root", "left", "right", "f(int)", "bad\033[31m" };

	(void)context;
	return names[number];
}

static bool name_has_parameters(void *context, uint32_t number)
{
	(void)context;
	return number == 3;
}

static const char *name_place(void *context, uint32_t number)
{
	(void)context;
	return number ? "/src/a.c:5" : "";
}

static const char *name_process(void *context, uint32_t pid)
{
	(void)context;
	return pid == PID ? "app" : "";
}

static const struct trace_names names = {
	.function = name_function,
	.has_parameters = name_has_parameters,
	.place = name_place,
	.process = name_process,
	.real_ns = UINT64_C(86400000000000),
};

/* ---- fixture -------------------------------------------------------------------------------- */

static void on_done(void *context, const struct trace_tree *tree)
{
	struct fixture *f = context;
	size_t size = 0;
	const void *payload =
		tree->count > f->seen_call
			? trace_tree_payload(tree, tree->calls[f->seen_call].payload, &size)
			: NULL;

	f->lost = tree->lost;
	f->parts = tree->part + 1;
	snprintf(f->payload, sizeof(f->payload), "%.*s", (int)size,
		payload ? (const char *)payload : "");
	assert_int_equal(trace_summary_add(&f->summary, tree), 0);
	assert_int_equal(f->json ? trace_json_tree(tree, &f->names, &f->text)
				 : trace_text_tree(tree, &f->names, false, &f->text),
		0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	setenv("TZ", "UTC", 1);
	trace_trees_init(&f->trees, &(struct trace_trees_options){
					    .max_calls = 1000,
					    .max_bytes = 1 << 20,
					    .done = on_done,
					    .context = f,
				    });
	buffer_init(&f->text, TEXT_BYTES);
	f->names = names;
	f->next = (struct abi_trace_event){
		.tree = 1, .tgid = PID, .tid = TID, .task = { .tgid = PID, .tid = TID }
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trace_trees_deinit(&f->trees);
	trace_summary_deinit(&f->summary);
	buffer_deinit(&f->text);
	free(f);
	return 0;
}

/* An event one microsecond after the last one. */
static void event(struct fixture *f, enum abi_trace_what what, uint32_t level, uint32_t function)
{
	struct abi_trace_event e = f->next;

	e.what = what;
	e.level = level;
	e.function = function;
	e.time_ns = f->next.time_ns;
	trace_trees_event(&f->trees, &e, f->payload, what == ABI_TRACE_ENTRY && level ? 1 : 0);
	f->next.time_ns += 1000;
	f->next.sequence++;
	f->next.payload_bytes = 0;
}

static void enter(struct fixture *f, uint32_t level, uint32_t function)
{
	event(f, ABI_TRACE_ENTRY, level, function);
}

static void leave(struct fixture *f, uint32_t level, uint32_t function)
{
	event(f, ABI_TRACE_RETURN, level, function);
}

static void expect(struct fixture *f, const char *text)
{
	assert_int_equal(buffer_append(&f->text, "", 1), 0);
	assert_string_equal((char *)f->text.bytes, text);
	f->text.size = 0;
}
