/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/process_labels.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/sampler/seam/process_origin.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/version.h"

enum {
	ENVIRONMENT_LABEL_BYTES = LABEL_NAME_BYTES + 1,
	HEX_BYTES = 2 * BUILD_ID_MAX_BYTES + 1,
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const char *program(const struct process_facts *p)
{
	return base_name(p->program_path);
}

/*
 * Cuts a long value rather than dropping the process, and keeps control characters, which a process
 * may put into its name, from whoever shows the label.
 */
static int process_labels_set(struct labels *labels, const char *name, const char *value)
{
	char cut[LABEL_VALUE_BYTES + 1];

	snprintf(cut, sizeof(cut), "%s", value);
	utf8_clean(cut, strlen(cut));
	return labels_set(labels, name, cut);
}

int process_labels(const struct process_facts *p, struct labels *labels)
{
	static const struct {
		const char *name;
		size_t offset;
	} texts[] = {
#define PROCESS_TEXT(name, ...) { #name, offsetof(struct process_facts, name) },
#include "agent/sampler/profile/sample_labels.def"
	};
	int err;

	if (p->kernel_thread)
		return 0;
	err = process_labels_set(labels, "executable", program(p));
	for (size_t i = 0; !err && i < ARRAY_SIZE(texts); i++)
		err = process_labels_set(labels, texts[i].name, (const char *)p + texts[i].offset);
	return err;
}

void process_labels_service(const struct process_facts *p, char *name, size_t size)
{
	const char *text = p->kernel_thread ? "kernel" : program(p);

	if (!*text)
		text = *p->comm ? p->comm : "unknown";
	snprintf(name, size, "%s", text);
}

/* ---- where it came from --------------------------------------------------------------------- */

static int set_command_line(const struct process_origin *origin, struct labels *labels)
{
	char text[LABEL_VALUE_BYTES + 1];
	size_t size = MIN(origin->command_line.size, sizeof(text) - 1);

	if (!size)
		return 0;
	memcpy(text, origin->command_line.bytes, size);
	while (size && !text[size - 1])
		size--;
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ? text[i] : ' ';
	text[size] = 0;
	return process_labels_set(labels, "__meta_process_cmdline", text);
}

/* The path of LINE, `ID:CONTROLLERS:PATH`; NULL if it is none. */
static const char *cgroup_of(const char *line)
{
	const char *controllers = strchr(line, ':');
	const char *colon = controllers ? strchr(controllers + 1, ':') : NULL;

	return colon ? colon + 1 : NULL;
}

/* The cgroup of the unified hierarchy, else the first. */
static int set_cgroup(const struct process_origin *origin, struct labels *labels)
{
	autofree char *text =
		strndup((const char *)origin->cgroup.bytes ?: "", origin->cgroup.size);
	char *at = text, *line;
	const char *path = NULL;

	if (!text)
		return -ENOMEM;
	if (!*text)
		return 0;
	while ((line = strsep(&at, "\n")) != NULL)
		if (!path || !strncmp(line, "0::", 3))
			path = cgroup_of(line) ?: path;
	return process_labels_set(labels, "__meta_process_cgroup", path ?: "");
}

/* ENTRY is `NAME=value`. The first entry wins, as in getenv(). */
static int set_variable(const char *entry, const char *names, struct labels *labels)
{
	char label[ENVIRONMENT_LABEL_BYTES];

	for (const char *name = names; *name; name += strlen(name) + 1) {
		size_t length = strlen(name);

		if (strncmp(entry, name, length) || entry[length] != '=')
			continue;
		snprintf(label, sizeof(label), "__meta_env_var_%s", name);
		return labels_get(labels, label)
			       ? 0
			       : process_labels_set(labels, label, entry + length + 1);
	}
	return 0;
}

/* The environment at exec: setenv() does not show there. */
static int set_environment(
	const struct process_origin *origin, const char *names, struct labels *labels)
{
	const char *at = (const char *)origin->environment.bytes, *nul;
	const char *end = at + origin->environment.size;
	int err = 0;

	/* Ignores an unterminated entry: half a value is wrong. */
	for (; !err && at < end && (nul = memchr(at, 0, (size_t)(end - at))) != NULL; at = nul + 1)
		err = set_variable(at, names, labels);
	return err;
}

static int set_origin(const struct process_facts *p, const char *environment, struct labels *labels)
{
	autocall(process_origin_deinit) struct process_origin origin = { 0 };
	char number[24];
	int err;

	if (process_origin_read(p, environment != NULL, &origin))
		return 0;
	snprintf(number, sizeof(number), "%" PRIu32, origin.parent);
	err = process_labels_set(labels, "__meta_process_ppid", number);
	if (!err)
		err = set_command_line(&origin, labels);
	if (!err)
		err = set_cgroup(&origin, labels);
	return err || !environment ? err : set_environment(&origin, environment, labels);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static int set_system(struct labels *labels)
{
	struct utsname system;
	int err;

	if (uname(&system))
		return 0;
	err = process_labels_set(labels, "__meta_system_kernel_release", system.release);
	if (!err)
		err = process_labels_set(labels, "__meta_system_kernel_machine", system.machine);
	return err ? err : process_labels_set(labels, "__meta_agent_revision", FATHOM_VERSION);
}

static int set_program(const struct process_facts *p, struct labels *labels)
{
	char hex[HEX_BYTES];

	build_id_format(&p->program_build_id, hex, sizeof(hex));
	return process_labels_set(labels, "__meta_process_executable_name", program(p))
		       ?: process_labels_set(labels, "__meta_process_executable_build_id", hex);
}

static int set_making(const struct symbolized_program *program, struct labels *labels)
{
	char hex[FILE_HASH_TEXT_BYTES];
	int err;

	if (!program)
		return 0;
	file_hash_format(&program->file_hash, hex);
	err = process_labels_set(labels, "__meta_process_executable_file_id", hex);
	if (!err)
		err = process_labels_set(
			labels, "__meta_process_executable_compiler", program->toolchain);
	if (!err)
		err = process_labels_set(labels, "__meta_process_executable_static",
			program->is_static ? "true" : "false");
	return err ? err
		   : process_labels_set(labels, "__meta_process_executable_stripped",
			     program->is_stripped ? "true" : "false");
}

int process_labels_meta(const struct process_facts *p, const struct symbolized_program *program,
	const char *environment, struct labels *labels)
{
	char number[16];
	int err;

	snprintf(number, sizeof(number), "%" PRIu32, p->pid);
	err = process_labels_set(labels, "__meta_process_pid", number);
	if (!err)
		err = set_program(p, labels);
	if (!err)
		err = set_making(program, labels);
	if (!err)
		err = set_system(labels);
	return err ? err : set_origin(p, environment, labels);
}
