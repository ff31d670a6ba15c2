/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/sandboxed/main.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/open_regular.h"
#include "symbolizer/indexer/arguments/arguments.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/keep_debug.h"
#include "symbolizer/sandbox/note_wire.h"
#include "symbolizer/sandbox/sandbox_wire.h"
#include "symbolizer/sandboxed/close_in.h"
#include "symbolizer/sandboxed/debuginfod_child.h"
#include "symbolizer/sandboxed/gather.h"
#include "symbolizer/sandboxed/note_child.h"

enum {
	SCRATCH_SHARE = 4, /* a fourth of what is free: other writers need space, too */
	ZFS_SUPER_MAGIC = 0x2fc12fc1,
};
static const uint64_t SCRATCH_MAX_BYTES = UINT64_C(512) << 20;

/* Parses `ROLE.CRC,` entries after an optional `f` and `?`, as sandbox.c writes them. */
static bool parse_debug_files(const char *text, struct sandbox_files *files)
{
	struct debug_files c = { .count = 0 };

	files->wants_functions = *text == 'f';
	text += files->wants_functions;
	files->may_ask = *text == '?';
	text += files->may_ask;

	while (*text) {
		unsigned int role, crc;
		int used = 0;

		if (c.count == DEBUG_FILES_MAX ||
			sscanf(text, "%u.%u,%n", &role, &crc, &used) != 2 || !used ||
			role >= DEBUG_FILE_ROLES)
			return false;
		c.items[c.count] = (struct debug_file){
			.fd = SANDBOX_FIRST_DEBUG_FD + (int)c.count,
			.role = role,
			.crc = crc,
		};
		c.count++;
		text += used;
	}
	files->debug_files = c;
	return true;
}

/* Parses `HEX,` entries, ascending, as sandbox.c writes them, into ADDRESSES. */
static bool parse_addresses(
	const char *text, uint64_t addresses[SANDBOX_ADDRESSES_MAX], struct sandbox_files *files)
{
	size_t count = 0;

	while (*text) {
		char *end;

		if (count == SANDBOX_ADDRESSES_MAX)
			return false;
		addresses[count] = strtoull(text, &end, 16);
		if (end == text || *end != ',' ||
			(count && addresses[count] < addresses[count - 1]))
			return false;
		count++;
		text = end + 1;
	}
	files->addresses = addresses;
	files->address_count = count;
	return true;
}

/* Reopens a file that the parent passed as a mere path, because closing it could wait. */
static int reopen_file(int *fd)
{
	int path_fd = *fd, err;

	if (!open_regular_is_path(path_fd))
		return 0;
	err = open_regular_again(path_fd, fd);
	if (!err)
		close(path_fd);
	return err;
}

/* This may wait for a file server. No foreign byte is read. */
static int reopen_files(struct sandbox_files *files)
{
	int err = reopen_file(&files->elf_fd);

	for (size_t i = 0; i < files->debug_files.count && !err; i++)
		err = reopen_file(&files->debug_files.items[i].fd);
	return err;
}

/* Not in memory, and not on a server, which may not answer or may lose what was written. */
static bool is_on_disk(const struct statfs *fs)
{
	static const uint32_t kinds[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, ZFS_SUPER_MAGIC };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((uint32_t)fs->f_type == kinds[i])
			return true;
	return false;
}

/* Returns how many bytes of FD's file system may be used for a while. */
static uint64_t room_for_scratch(int fd)
{
	struct rlimit file_size;
	struct statfs fs;
	uint64_t room;

	if (fstatfs(fd, &fs) || getrlimit(RLIMIT_FSIZE, &file_size) || !is_on_disk(&fs))
		return 0;
	room = (uint64_t)fs.f_bavail / SCRATCH_SHARE * (uint64_t)fs.f_bsize;
	return MIN(MIN(room, SCRATCH_MAX_BYTES), (uint64_t)file_size.rlim_cur);
}

static int close_in_by(
	int argc, char **argv, struct sandbox_files *files, struct sandbox_limits *ret_limits)
{
	static uint64_t addresses[SANDBOX_ADDRESSES_MAX];
	struct sandbox_limits limits;
	unsigned long parent, memory, cpu, output;
	unsigned int fd_count;
	int err;

	if (argc != SANDBOX_ARGUMENTS || !sandbox_parse_number(argv[2], &parent) ||
		!sandbox_parse_number(argv[3], &memory) || !sandbox_parse_number(argv[4], &cpu) ||
		!sandbox_parse_number(argv[5], &output) || !parse_debug_files(argv[6], files) ||
		!parse_addresses(argv[7], addresses, files))
		return -EINVAL;
	err = sandbox_tie_to_parent((pid_t)parent);
	if (err)
		return err;
	sandbox_offer_to_oom_killer();
	fd_count = SANDBOX_FIRST_DEBUG_FD + (unsigned int)files->debug_files.count;
	if (syscall(SYS_close_range, fd_count, ~0u, 0))
		return -errno;
	err = reopen_files(files);
	if (err)
		return err;
	/*
	 * Nothing can be loaded later. Without the library the index has no functions, and no
	 * rules for code without tables.
	 */
	code_libraries_load(files->wants_functions);
	/* The parent's answers bring more descriptors. */
	if (!files->may_ask)
		err = sandbox_limit(RLIMIT_NOFILE, fd_count, fd_count);
	if (err)
		return err;
	files->scratch_bytes = MIN(output, room_for_scratch(files->output_fd));
	limits = (struct sandbox_limits){
		.memory_bytes = memory,
		.cpu_seconds = (unsigned int)cpu,
		.output_bytes = output,
	};
	*ret_limits = limits;
	return sandbox_enter(&limits);
}

static uint64_t files_bytes(const struct sandbox_files *files)
{
	struct stat st;
	uint64_t bytes = io_fstat(files->elf_fd, &st) ? 0 : (uint64_t)st.st_size;

	for (size_t i = 0; i < files->debug_files.count; i++)
		if (!io_fstat(files->debug_files.items[i].fd, &st))
			bytes += (uint64_t)st.st_size;
	return bytes;
}

int sandboxed_run(int argc, char **argv, sandboxed_task *task)
{
	struct sandbox_files files = { .elf_fd = SANDBOX_ELF_FD, .output_fd = SANDBOX_OUTPUT_FD };
	struct sandbox_result result = { 0 };
	struct sandbox_limits limits;

	if (close_in_by(argc, argv, &files, &limits))
		return EXIT_FAILURE;
	if (files.may_ask)
		gather_debug_files(&files);
	if (sandbox_settle(&limits, files_bytes(&files)))
		_exit(EXIT_FAILURE);
	result.error = task(&files, &result);
	sandbox_report(&result);
}

bool sandboxed_is_command(const char *name)
{
	return !strcmp(name, SANDBOX_INDEX_COMMAND) || !strcmp(name, SANDBOX_KEEP_DEBUG_COMMAND) ||
	       !strcmp(name, SANDBOX_ARGUMENTS_COMMAND) || !strcmp(name, SANDBOX_FETCH_COMMAND) ||
	       !strcmp(name, NOTE_COMMAND);
}

static int keep_debug(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	return keep_debug_run(files->elf_fd, files->output_fd, ret_result);
}

/* Otherwise it would be `exe`, of /proc/self/exe. */
static void set_name(const char *command)
{
	static const struct {
		const char *command, *name; /* 15 bytes at most */
	} names[] = {
		{ SANDBOX_INDEX_COMMAND, "fathom-index" },
		{ SANDBOX_KEEP_DEBUG_COMMAND, "fathom-strip" },
		{ SANDBOX_ARGUMENTS_COMMAND, "fathom-args" },
		{ SANDBOX_FETCH_COMMAND, "fathom-fetch" },
		{ NOTE_COMMAND, "fathom-notes" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(command, names[i].command))
			sandbox_set_name(names[i].name);
}

static sandboxed_task *sandboxed_task_of(const char *command)
{
	if (!strcmp(command, SANDBOX_KEEP_DEBUG_COMMAND))
		return keep_debug;
	return strcmp(command, SANDBOX_ARGUMENTS_COMMAND) ? builder_run_files : arguments_run;
}

int sandboxed_main(int argc, char **argv)
{
	if (argc > 1)
		set_name(argv[1]);
	if (argc > 1 && !strcmp(argv[1], SANDBOX_FETCH_COMMAND))
		return debuginfod_child_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], NOTE_COMMAND))
		return note_child_main(argc, argv);
	return sandboxed_run(argc, argv, sandboxed_task_of(argc > 1 ? argv[1] : ""));
}
