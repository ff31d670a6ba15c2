/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom upload` reads any file and makes payloads from it. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct labels external = { 0 };
	struct upload_series series = { .external = &external, .service = "f", .time_ns = 1 };
	struct pprof_read profile;
	const char *why;
	char path[32];

	if (fd < 0 || io_write_all(fd, data, size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!pprof_read_file(path, &profile, &why)) {
		upload_payloads(&profile, &series, check_payload, NULL);
		pprof_read_deinit(&profile);
	}
	close(fd);
	return 0;
}
