/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Access to other people's files. Any such call may wait for as long as somebody else likes: the
 * server of a FUSE mount does not answer, an NFS server is gone, a process holds the lock of its
 * memory while its /proc/PID/maps is read, or hangs in execve() while anything is read there that
 * asks for the rights to trace it (stat, exe and root are such). So a thread that must not wait
 * makes these calls here and nowhere else, and a helper process can make them in its place, with a
 * deadline (agent/sampler/files/file_helper.h). Without a helper they are made here and now,
 * through base/host.h, so that recordings have the results.
 *
 * Closing a file may wait as well: a FUSE server is asked at each close(), also by exit() and
 * dup2(), and the last close of a file may ask an NFS server. So a helper returns descriptors that
 * are mere paths (O_PATH) and that nobody is asked about at their close; all but the text of /proc
 * and directories, which never wait, have to be read by the functions below, or by a process that
 * may wait and reopens them (open_regular_again()). Without a helper they are open for reading.
 *
 * All functions return 0 (or a length) or a negative errno. A helper adds -EAGAIN: nobody answered
 * in time, or something there did not answer a short while ago. It is transient
 * (failure_is_transient()) and says nothing about the file.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/build_id_reader.h"
#include "base/module_id.h"

/* Where a path begins, and what may be there. All but the last two accept only regular files. */
enum foreign_place {
	FOREIGN_MAPPED, /* a file of DIR_FD/map_files */
	FOREIGN_ROOT, /* PATH below the directory DIR_FD/NAME, which links cannot leave */
	FOREIGN_ROOT_ITSELF, /* likewise, and the file itself is no link */
	FOREIGN_BELOW, /* PATH below the directory DIR_FD, which links cannot leave */
	FOREIGN_HERE, /* PATH as we see it */
	/*
	 * The file DIR_FD/NAME of /proc. A helper reads it and returns its text as a file, at most
	 * FOREIGN_TEXT_BYTES.
	 */
	FOREIGN_TEXT,
	FOREIGN_DIRECTORY, /* an O_PATH descriptor of the directory DIR_FD/NAME */
	FOREIGN_PLACES,
};

enum {
	FOREIGN_TEXT_BYTES = 64 << 20,
	FOREIGN_PATH_BYTES = 4096,
	/* In one message of foreign_send(). */
	FOREIGN_SEND_BYTES = 256,
	FOREIGN_SEND_FILES = 8,
};

struct foreign_path {
	enum foreign_place place;
	int dir_fd; /* may be AT_FDCWD for FOREIGN_TEXT */
	const char *name; /* NULL where the place has none */
	const char *path; /* NULL where the place has none */
	/* Of a mapped file, or 0: if one file on a device does not answer, none is asked for a
	 * while. */
	uint64_t device;
};

struct foreign {
	void *context; /* passed as the first argument */
	int (*open)(void *context, const struct foreign_path *path, int *ret_fd);
	int (*stat_at)(void *context, int dir_fd, const char *name, struct stat *ret_stat);
	int (*stat)(void *context, int fd, struct stat *ret_stat);
	ssize_t (*read_at)(void *context, int fd, uint64_t off, void *bytes, size_t size);
	ssize_t (*read_text)(void *context, int dir_fd, const char *name, char *text, size_t size);
	ssize_t (*read_link)(void *context, int dir_fd, const char *name, char *text, size_t size);
	int (*state)(void *context, int fd, struct file_id *ret_id);
	/* As file_identity_read() (agent/sampler/files/file_identity.h). */
	int (*identity)(
		void *context, const struct build_id_question *question, struct module_id *ret_id);
	/* As foreign_send(). */
	int (*send)(void *context, int socket_fd, const void *bytes, size_t size, const int *fds,
		size_t fd_count);
};

/* NULL = no helper. A global for the same reason as host_current. */
extern const struct foreign *foreign_current;

int foreign_open(const struct foreign_path *path, int *ret_fd);
/* Only device and inode; follows links. A file server is not asked. */
int foreign_stat_at(int dir_fd, const char *name, struct stat *ret_stat);
/* What one read() of the file DIR_FD/NAME of /proc returns, not terminated. Returns its length. */
ssize_t foreign_read_text(int dir_fd, const char *name, char *text, size_t size);
/* Of a link of /proc, as readlinkat(). */
ssize_t foreign_read_link(int dir_fd, const char *name, char *text, size_t size);
/* FD and all descriptors below were opened by foreign_open(). */
int foreign_stat(int fd, struct stat *ret_stat);
/* As io_read_at(). */
ssize_t foreign_read_at(int fd, uint64_t off, void *bytes, size_t size);
/* As file_state_read(). */
int foreign_state(int fd, struct file_id *ret_id);

/*
 * For index builds, of which recordings have the results: never recorded. foreign_look() is
 * foreign_stat() for any descriptor; foreign_open_below() opens as FOREIGN_BELOW and looks.
 */
int foreign_look(int fd, struct stat *ret_stat);
int foreign_open_below(int root_fd, const char *path, struct stat *ret_stat, int *ret_fd);

/*
 * Sends a message of SIZE bytes with FD_COUNT files, open for reading, over a socket, without
 * waiting for room in it. A helper reopens them and sends the message itself, so that we never have
 * what the receiver gets. FDS: opened by foreign_open(), or any other regular files.
 */
int foreign_send(int socket_fd, const void *bytes, size_t size, const int *fds, size_t fd_count);
/* Likewise, without a helper: files that are mere paths stay so. */
int foreign_send_now(
	int socket_fd, const void *bytes, size_t size, const int *fds, size_t fd_count);
