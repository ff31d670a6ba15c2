/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A tree as text: a line for each call, indented by its level. */
#include <stdbool.h>

#include "agent/trace/trace_names.h"
#include "agent/trace/trace_trees.h"
#include "base/buffer.h"

/* Appends TREE, with escape sequences if COLOR. Returns the buffer's error. */
int trace_text_tree(const struct trace_tree *tree, const struct trace_names *names, bool color,
	struct buffer *out);
/* Appends TEXT with what could drive a terminal replaced. */
void trace_text_foreign(struct buffer *out, const char *text);
