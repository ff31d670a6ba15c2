/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs stay without names, and what would name them: for /status and the page. */
#include <stdio.h>

#include "agent/daemon/daemon_internal.h"
#include "base/clock.h"

enum { MAX_PROGRAMS = 10, HINT_BYTES = 1024 };

/* Each look symbolizes the innermost frames of a window once more. */
static const uint64_t LOOK_NS = UINT64_C(60000000000);

void daemon_nameless_deinit(struct daemon *d)
{
	report_nameless_free(d->nameless, d->nameless_count);
	d->nameless = NULL;
	d->nameless_count = 0;
}

void daemon_nameless_look(struct daemon *d, const struct report_sources *sources)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct report_nameless *list;
	size_t count;

	if (d->nameless_ns && now_ns - d->nameless_ns < LOOK_NS)
		return;
	if (report_nameless(sources, MAX_PROGRAMS, &list, &count))
		return;
	daemon_nameless_deinit(d);
	d->nameless = list;
	d->nameless_count = count;
	d->nameless_ns = now_ns;
}

void daemon_nameless_write(const struct daemon *d, struct json *j)
{
	char hint[HINT_BYTES];

	json_array_by_line(j, "unnamed_programs");
	for (size_t i = 0; i < d->nameless_count; i++) {
		const struct report_nameless *n = &d->nameless[i];

		nameless_hint(n, NULL, hint, sizeof(hint));
		json_object(j, NULL);
		daemon_json_text(j, "program", n->program);
		json_number(j, "pid", n->pid);
		json_decimal(j, "percent", 100.0 * (double)n->count / (double)n->total, 1);
		daemon_json_text(j, "file", n->file);
		daemon_json_text(j, "to_do", hint);
		json_close(j);
	}
	json_close(j);
}
