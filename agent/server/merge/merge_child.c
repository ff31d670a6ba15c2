/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/merge/merge_child.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/server/merge/merge_wire.h"
#include "agent/server/merge/stored_merge.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/sandbox/sandbox.h"

enum {
	NICE = 5, /* somebody waits, and a busy machine leaves nothing to the lowest priority */
	MEMORY_BYTES = 256 << 20,
	CPU_SECONDS = 60,
	JOB_BYTES = 32 << 20,
	OUTPUT_BYTES = 64 << 20,
};

DEFINE_AUTO(stored_merge);

bool merge_child_is_command(const char *name)
{
	return !strcmp(name, MERGE_WIRE_COMMAND);
}

static int merge_child_limit(int resource, rlim_t limit)
{
	return setrlimit(resource, &(struct rlimit){ limit, limit }) ? -errno : 0;
}

static int merge_child_drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, none))
		return -errno;
	return 0;
}

/* Sanitizers need more address space than there is. */
static int merge_child_confine(pid_t parent)
{
	int err = merge_child_limit(RLIMIT_CPU, CPU_SECONDS);

	if (!err && sandbox_is_closed())
		err = merge_child_limit(RLIMIT_AS, MEMORY_BYTES);
	if (!err)
		err = merge_child_drop_capabilities();
	if (!err && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		err = -errno;
	(void)nice(NICE);
	/* The parent may have ended before that. */
	return err ? err : getppid() == parent ? 0 : -ESRCH;
}

/*
 * A file may have been removed meanwhile, as the oldest are: then its window is over. What replaces
 * its files must have all that they have: only what can never be read is left out.
 */
static int merge_child_add(struct stored_merge *m, bool replaces,
	const struct stored_merge_source *source, unsigned int *unread)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	const char *why;
	int err = pprof_read_at(MERGE_WIRE_DIRECTORY_FD, source->path, &profile, &why);

	if (!err)
		return stored_merge_add(m, source, &profile);
	if (err == -ENOENT)
		return 0;
	if (err == -ENOMEM || (replaces && err != -EBADMSG && err != -ELOOP))
		return err;
	*unread += *unread < MERGE_WIRE_MOST_UNREAD;
	return stored_merge_unread(m, source);
}

static int merge_child_add_line(
	struct stored_merge *m, bool replaces, const char *line, unsigned int *unread)
{
	char group[MERGE_WIRE_GROUP_BYTES], path[MERGE_WIRE_PATH_BYTES];
	struct stored_merge_source source = { .path = path, .group = group };

	if (sscanf(line, "%x %x %x %" SCNx64 " %127s %255[^\n]", &source.minutes,
		    &source.all_minutes, &source.minute, &source.slice_ms, group, path) != 6)
		return -EINVAL;
	if (!strcmp(group, MERGE_WIRE_NO_GROUP))
		*group = 0;
	return merge_child_add(m, replaces, &source, unread);
}

static int merge_child_run(const struct stored_merge_options *options, unsigned int *unread)
{
	autocall(auto_stored_merge_destroy) struct stored_merge *m = NULL;
	autocall(buffer_deinit) struct buffer job, out;
	const bool replaces = stored_merge_replaces(options->form);
	char *line, *rest;
	int err;

	buffer_init(&job, JOB_BYTES);
	buffer_init(&out, OUTPUT_BYTES);
	err = stored_merge_create(options, &m);
	if (!err)
		err = io_read_all(MERGE_WIRE_JOB_FD, &job);
	if (!err)
		err = buffer_append(&job, "", 1);
	rest = (char *)job.bytes;
	while (!err && (line = strsep(&rest, "\n")) != NULL)
		err = *line ? merge_child_add_line(m, replaces, line, unread) : 0;
	if (!err && options->group && *options->group && !stored_merge_samples(m))
		err = -ENOENT;
	if (!err)
		err = stored_merge_encode(m, &out);
	if (!err)
		err = io_write_all(MERGE_WIRE_OUTPUT_FD, out.bytes, out.size);
	return !err && replaces && fsync(MERGE_WIRE_OUTPUT_FD) ? -errno : err;
}

int merge_child_main(int argc, char **argv)
{
	struct stored_merge_options options = { 0 };
	unsigned int unread = 0;
	int err;

	if (argc != MERGE_WIRE_ARGUMENTS)
		return MERGE_WIRE_FAILED;
	options.form = (enum stored_merge_form)strtol(argv[3], NULL, 10);
	options.comm = argv[4];
	options.container = argv[5];
	options.group = argv[6];
	err = merge_child_confine((pid_t)strtol(argv[2], NULL, 10))
		      ?: merge_child_run(&options, &unread);
	if (err == -E2BIG || err == -ENOMEM)
		return MERGE_WIRE_TOO_LARGE;
	if (err)
		return err == -ENOENT ? MERGE_WIRE_NOTHING : MERGE_WIRE_FAILED;
	return unread ? MERGE_WIRE_UNREAD + (int)unread : MERGE_WIRE_DONE;
}
