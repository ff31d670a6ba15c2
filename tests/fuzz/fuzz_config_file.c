/* SPDX-License-Identifier: Apache-2.0 */
/* A settings file of any bytes is accepted, or refused with a message that names the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/settings/config.h"
#include "agent/daemon/daemon_internal.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(struct config *config, const char *path)
{
	struct daemon_settings settings;
	autofree char *message = NULL, *why = NULL;

	if (config_load(config, path, &message)) {
		if (message && strncmp(message, path, strlen(path)))
			abort();
		return;
	}
	if (!daemon_settings_read(config, &settings, &why) &&
		(settings.frequency_hz < 1 || settings.frequency_hz > 1000))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *argv[] = { (char *)"agent", NULL };
	autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct config config;
	char path[32];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	if (config_parse(&config, IN_AGENT, 1, argv))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	load(&config, path);
	config_deinit(&config);
	return 0;
}
