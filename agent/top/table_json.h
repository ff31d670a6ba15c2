/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A table of `fathom top` as one JSON object on one line. */
#include "agent/top/screen.h"
#include "agent/top/snapshot.h"
#include "agent/top/view.h"
#include "base/buffer.h"

/* Appends the table that V shows, all rows that match its filter, and a newline. Sorts the rows. */
int table_json(struct buffer *out, const struct view *v, struct snapshot *snapshot,
	const struct screen_facts *facts);
