/* SPDX-License-Identifier: Apache-2.0 */
/* The files that `fathom record` writes: the profile, and the page with it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/record.h"
#include "agent/server/serve/page_file.h"
#include "base/cleanup.h"

static int record_files_refuse(const char *path, int err)
{
	fprintf(stderr, "fathom record: cannot write %s: %s\n", path, strerror(-err));
	return err;
}

/* A terminal shows a profile as noise, and what it prints can change its settings. */
static int record_files_check_terminal(const struct record_plan *plan)
{
	if (!plan->output || strcmp(plan->output, "-") || plan->folded || !isatty(STDOUT_FILENO))
		return 0;
	fputs("fathom record: a profile is binary, and standard output is a terminal: name a file "
	      "with -o, or use --folded for text\n",
		stderr);
	return -EINVAL;
}

int record_files_check(const struct record_plan *plan)
{
	const char *const paths[] = { plan->output, plan->html };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		int err = paths[i] ? output_file_check(paths[i]) : 0;

		if (err)
			return record_files_refuse(paths[i], err);
	}
	return record_files_check_terminal(plan);
}

/* The name under which the page shows the profile. */
static const char *record_files_name(const struct record_plan *plan)
{
	const char *name = strcmp(plan->html, "-") ? plan->html : plan->output;

	return name && strcmp(name, "-") ? name : "fathom.pb.gz";
}

static int record_files_write_page(const struct record_plan *plan, const struct buffer *profile)
{
	struct page_profile shown = {
		.name = record_files_name(plan), .bytes = profile->bytes, .size = profile->size
	};
	char policy[PAGE_POLICY_BYTES];
	autocall(buffer_deinit) struct buffer page;
	int err;

	buffer_init(&page, RECORD_OUTPUT_BYTES);
	err = page_of_files(&shown, 1, &page, policy);
	return err ? err : output_file_write(plan->html, &page);
}

int record_files_write(const struct record_plan *plan, const struct buffer *profile)
{
	int err = plan->output ? output_file_write(plan->output, profile) : 0;

	if (err)
		return record_files_refuse(plan->output, err);
	err = plan->html ? record_files_write_page(plan, profile) : 0;
	return err ? record_files_refuse(plan->html, err) : 0;
}
