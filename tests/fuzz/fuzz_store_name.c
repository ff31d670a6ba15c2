/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names from the store's directory or from a request: an accepted name is formatted to the same
 * text and stays below the directory. And labels that become file names.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/store/file_name.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_plain(const char *path)
{
	const char *slash = strchr(path, '/');

	if (!slash || slash - path != FILE_NAME_DAY_LENGTH || strchr(slash + 1, '/') ||
		slash[1] == '.' || strlen(path) >= FILE_NAME_BYTES)
		abort();
}

static void read_it(const char *text)
{
	char again[FILE_NAME_BYTES];
	struct file_name name;

	(void)file_name_is_day(text);
	if (!file_name_parse(text, &name))
		return;
	file_name_format(&name, again, sizeof(again));
	if (strcmp(again, text))
		abort();
	must_be_plain(again);
}

/* The file of the slot: what it is, which minutes and which generation come back. */
static void write_merged(const struct file_name *window, int64_t seed)
{
	struct file_name name = *window, parsed;
	char path[FILE_NAME_BYTES];

	name.time_tenths = file_name_slot(window) * FILE_NAME_SLOT_TENTHS;
	name.kind = seed & 1 ? FILE_KIND_MINUTES : FILE_KIND_MERGED;
	name.generation = (uint16_t)(seed / 2 % FILE_NAME_GENERATIONS + 1);
	name.minutes = seed & 1 ? (uint16_t)((seed / 256 & 1023) | 1) : 0;
	name.label[0] = 0;
	file_name_format(&name, path, sizeof(path));
	must_be_plain(path);
	if (!file_name_parse(path, &parsed) || parsed.kind != name.kind ||
		parsed.generation != name.generation || parsed.minutes != name.minutes ||
		parsed.time_tenths != name.time_tenths)
		abort();
}

static void write_it(const char *label, int64_t time_ns, int64_t duration_ns)
{
	char path[FILE_NAME_BYTES];
	struct file_name name, parsed;

	if (!file_name_init(&name, label, time_ns, duration_ns))
		return;
	file_name_format(&name, path, sizeof(path));
	must_be_plain(path);
	if (!file_name_parse(path, &parsed) || parsed.time_tenths != name.time_tenths ||
		parsed.duration_tenths != name.duration_tenths || parsed.kind != name.kind ||
		strcmp(parsed.label, name.label))
		abort();
	write_merged(&name, duration_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size);
	int64_t numbers[2] = { 0 };

	if (!text)
		return 0;
	read_it(text);
	memcpy(numbers, data, size < sizeof(numbers) ? size : sizeof(numbers));
	write_it(text, numbers[0], numbers[1]);
	write_it(NULL, numbers[0], numbers[1]);
	return 0;
}
