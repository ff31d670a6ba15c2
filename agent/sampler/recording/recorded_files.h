/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files and directories as the recorder sees them: asks the system, writes the question and the
 * answer, and remembers what each descriptor was opened as. A file of /proc is read whole when it
 * is opened, and the caller gets the copy: the replay has no other content.
 *
 * The functions are those of base/host.h, errno included.
 */
#include <dirent.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/host.h"
#include "base/map.h"

struct recorded_handle;
struct writer;

struct recorded_files {
	struct writer *writer; /* borrowed */
	struct recorded_handle *handles; /* by descriptor */
	uint32_t objects; /* number of files opened */
	struct map written; /* hash of a place in a file → hash of what was read there last */
};

/* Returns -ENOMEM. */
int recorded_files_init(struct recorded_files *f, struct writer *writer);
void recorded_files_deinit(struct recorded_files *f);

int recorded_files_openat(struct recorded_files *f, int dir_fd, const char *path, int flags);
int recorded_files_open_regular(
	struct recorded_files *f, int dir_fd, const char *path, enum host_resolve how, int *ret_fd);
int recorded_files_fstat(struct recorded_files *f, int fd, struct stat *ret_stat);
int recorded_files_file_state(struct recorded_files *f, int fd, struct file_id *ret_id);
int recorded_files_fstatat(
	struct recorded_files *f, int dir_fd, const char *path, struct stat *ret_stat);
ssize_t recorded_files_readlinkat(
	struct recorded_files *f, int dir_fd, const char *path, char *text, size_t size);
ssize_t recorded_files_pread(struct recorded_files *f, int fd, void *bytes, size_t size, off_t off);
struct dirent *recorded_files_readdir(const struct recorded_files *f, DIR *directory);
/* Records the build ID of the file FD, or why there is none: ERR. */
void recorded_files_build_id(struct recorded_files *f, int fd, int err, const struct build_id *id);
/* As recorded_files_open_regular(), without recording anything. */
int recorded_files_resolve(int dir_fd, const char *path, enum host_resolve how, int *ret_fd);
