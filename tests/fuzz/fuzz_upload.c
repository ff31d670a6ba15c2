/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom upload` and merges read any file; one makes payloads from it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/commands/upload.h"
#include "base/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int check_payload(void *context, const struct payload *payload)
{
	(void)context;
	if (!payload->pprof.size || payload->time_ns <= 0 ||
		!labels_get(&payload->labels, "__name__"))
		abort();
	return 0;
}

/* The same profile, but its samples are decoded into a table. Returns how many it has. */
static size_t count_in_table(const char *path)
{
	struct pprof_read profile;
	const char *why;
	size_t count;

	if (pprof_read_at(AT_FDCWD, path, &profile, &why))
		return 0;
	count = profile.samples.count;
	pprof_read_deinit(&profile);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct labels external = { 0 };
	struct upload_series series = { .external = &external, .service = "f", .time_ns = 1 };
	struct pprof_read profile;
	const char *why;
	size_t in_table;
	char path[32];

	if (fd < 0 || io_write_all(fd, data, size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	in_table = count_in_table(path);
	if (!pprof_read_file(path, &profile, &why)) {
		if (in_table && in_table != profile.message->n_sample)
			abort();
		upload_payloads(&profile, &series, check_payload, NULL);
		pprof_read_deinit(&profile);
	}
	close(fd);
	return 0;
}
