/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom pgo` merges any two profiles that it reads, and reads its own result. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/commands/pgo.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/moment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

DEFINE_AUTO(pgo_merge);

static int read_bytes(const void *bytes, size_t size, struct pprof_read *ret_profile)
{
	autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	const char *why;
	char path[32];

	if (fd < 0 || io_write_all(fd, bytes, size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return pprof_read_file(path, ret_profile, &why);
}

static uint64_t sum_of(const struct pprof_read *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->message->n_sample; i++)
		sum += (uint64_t)profile->message->sample[i]->value[0];
	return sum;
}

static bool is_of_time(const struct pprof_read *profile)
{
	return !strcmp(pprof_read_text(profile, profile->message->sample_type[0]->type), "cpu");
}

static void check_result(struct pgo_merge *merge)
{
	const struct pgo_merge_facts facts = pgo_merge_facts(merge);
	autocall(pprof_read_deinit) struct pprof_read result = { 0 };
	autocall(buffer_deinit) struct buffer out;
	uint64_t sum, expected;

	buffer_init(&out, 256 << 20);
	if (pgo_merge_encode(merge, &out))
		return; /* no samples */
	if (read_bytes(out.bytes, out.size, &result))
		abort();
	sum = sum_of(&result);
	expected = is_of_time(&result) ? facts.time_ns : facts.samples;
	if (sum != expected && expected < INT64_MAX) /* beyond that, sums saturate */
		abort();
}

/* Twice: the second time everything is known already. */
static void merge_twice(const struct pprof_read *profile, const struct pgo_selection *selection)
{
	autocall(auto_pgo_merge_destroy) struct pgo_merge *merge = NULL;
	autocall(pgo_samples_deinit) struct pgo_samples samples = { 0 };
	autocall(pgo_programs_deinit) struct pgo_programs programs = { 0 };
	const char *why;

	if (pgo_merge_create(&merge) || pgo_programs_init(&programs))
		abort();
	if (pgo_samples_init(&samples, profile, selection, &why))
		return;
	if (pgo_programs_survey(&programs, &samples, true))
		abort();
	if (pgo_merge_add(merge, &samples, &why) || pgo_merge_add(merge, &samples, &why))
		return;
	check_result(merge);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pgo_selection all = { 0 }, some = { .comm = "shop", .program = "*s*" };
	struct pprof_read profile;
	char text[64];
	int64_t time_ns;

	snprintf(text, sizeof(text), "%.*s", (int)size, (const char *)data);
	if (!moment_parse(text, INT64_C(1795521600000000000), &time_ns) && time_ns < 0)
		abort();
	if (read_bytes(data, size, &profile))
		return 0;
	merge_twice(&profile, &all);
	merge_twice(&profile, &some);
	pprof_read_deinit(&profile);
	return 0;
}
