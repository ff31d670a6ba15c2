/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/latency_hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/sampler.h"
#include "agent/sampler/sampler_latency.h"
#include "base/cleanup.h"
#include "base/utf8.h"

static const uint64_t LIBRARIES_WAIT_NS = UINT64_C(10000000000);

/* Names are foreign bytes, and this is a terminal. */
static void print_name(const char *name, size_t size)
{
	autofree char *clean = strndup(name, size);

	if (clean)
		utf8_clean(clean, strlen(clean));
	fputs(clean ? clean : "??", stderr);
}

/* `libc` and `libc.so.6` are both accepted as BIN of /usr/lib/libc.so.6. */
static void say_library(const struct latency_plan *plan, size_t number, const char *path)
{
	const struct function_pattern *pattern = &plan->wanted.items[number];
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	const char *suffix = strstr(file, ".so");

	fprintf(stderr, "fathom %s: ", plan->name);
	print_name(file, strlen(file));
	fprintf(stderr, " has %s: -u ", pattern->glob);
	print_name(file, suffix && suffix > file ? (size_t)(suffix - file) : strlen(file));
	fprintf(stderr, ":%s\n", pattern->glob);
}

static void say_hint(const struct sampler *sampler, const struct latency_plan *plan, size_t pattern)
{
	autofree char *name = NULL, *library = NULL;

	if (sampler_latency_hint(sampler, &plan->wanted, pattern, &name, &library))
		return; /* only a hint is missing */
	if (name) {
		fprintf(stderr, "fathom %s: -u '%s': did you mean ", plan->name,
			plan->wanted.items[pattern].text);
		print_name(name, strlen(name));
		fputs("?\n", stderr);
	}
	if (library)
		say_library(plan, pattern, library);
}

void latency_say_hints(struct sampler *sampler, const struct latency_plan *plan, bool failed)
{
	const struct probed_files *files = sampler_probed_files(sampler);
	bool any = false, anywhere = false;

	for (size_t i = 0; i < plan->wanted.count - plan->optional; i++) {
		bool unmatched = !probed_files_matches(files, i);

		any |= unmatched;
		anywhere |= unmatched && !plan->wanted.items[i].binary;
	}
	if (failed && anywhere) {
		sampler_latency_want_libraries(sampler);
		(void)sampler_finish_builds(sampler, LIBRARIES_WAIT_NS);
	}
	for (size_t i = 0; i < plan->wanted.count - plan->optional && any; i++)
		if (!probed_files_matches(files, i))
			say_hint(sampler, plan, i);
}
