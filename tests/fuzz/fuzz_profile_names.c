/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom symbolize --profile` adds names to any profile; the result can be read again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/commands/profile_names.h"
#include "base/cleanup.h"
#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

static size_t look_up(
	void *context, size_t mapping, uint64_t address, struct index_frame *ret_frames, size_t max)
{
	static const char *const names[] = { "f", "g\xff", "h::i()" };
	size_t count = address % 4;

	(void)context;
	for (size_t i = 0; i < count && i < max; i++)
		ret_frames[i] = (struct index_frame){
			.name = names[i],
			.linkage = names[(i + mapping) % ARRAY_SIZE(names)],
			.file = address & 8 ? "a.c" : "",
			.line = (uint32_t)(address >> 8),
		};
	return count;
}

static void check_again(const struct pprof_read *profile)
{
	size_t size = perftools__profiles__profile__get_packed_size(profile->message);
	struct pprof_read again;
	uint8_t *bytes = malloc(size + 1);

	if (!bytes)
		abort();
	perftools__profiles__profile__pack(profile->message, bytes);
	if (read_bytes(bytes, size, &again))
		abort();
	pprof_read_deinit(&again);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct profile_names_options options = {
		.look_up = look_up, .no_inlines = size % 2, .linkage_names = size % 3 == 0
	};
	struct profile_names_counts counts;
	struct pprof_read profile;

	if (read_bytes(data, size, &profile))
		return 0;
	if (profile_names_add(&profile, &options, &counts) || counts.named > counts.nameless)
		abort();
	check_again(&profile);
	pprof_read_deinit(&profile);
	return 0;
}
