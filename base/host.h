/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The host as the sampler sees it: all input of the sampler goes through the functions below. That
 * is the clocks, the files of /proc, the files that processes map, the rings, and results from
 * other processes (build IDs, index builds, the vDSO).
 *
 * Normally each function is the system call that it is named after. A developer can record the
 * results (agent/sampler/recording/), and a test can replay such a recording (tests/replay/). Both
 * install a `struct host` once, before anything else runs. It is a global because it stands in for
 * the kernel, and there is only one of those.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/build_id_reader.h"
#include "base/file_state.h"
#include "base/open_regular.h"

struct ring;

/* How host_open_regular() resolves a path (base/open_regular.h). */
enum host_resolve {
	HOST_RESOLVE_AGAIN, /* DIR_FD is the O_PATH descriptor of the file; the path is NULL */
	HOST_RESOLVE_BELOW,
	HOST_RESOLVE_ITSELF_BELOW,
};

/*
 * Events in the sampler that are not calls to the host. A replay repeats them in the same order.
 * agent/sampler/recording/notes.h defines the payload of each.
 */
enum host_note {
	HOST_NOTE_TICK, /* the event loop calls a source; payload: bool, whether it is the timers */
	HOST_NOTE_TIMER, /* the event loop calls a timer; payload: uint64_t, when it was due */
	HOST_NOTE_RINGS_READY, /* that source is the sampler's rings */
	HOST_NOTE_BUILDS_READY, /* that source is the sampler's index builds */
	HOST_NOTE_CALL, /* a function of agent/sampler/sampler.h was called */
	HOST_NOTE_COLLECT, /* what agent/sampler/collect/ can do on this kernel */
	HOST_NOTE_VDSO, /* the vDSO's identity */
	HOST_NOTE_REQUEST, /* an index was requested */
	HOST_NOTE_INDEX, /* the answer to a request: an index, or none */
	HOST_NOTE_CACHED, /* the result of an index cache lookup */
	HOST_NOTE_REPORT, /* a profile was written */
};

/* Each function behaves like the system call of its name unless noted otherwise. */
struct host {
	void *context; /* passed as the first argument */
	uint64_t (*clock_ns)(void *context, clockid_t clock);
	int (*openat)(void *context, int dir_fd, const char *path, int flags);
	int (*open_regular)(void *context, int dir_fd, const char *path, enum host_resolve how,
		int *ret_fd); /* returns 0 or a negative errno */
	int (*fstat)(void *context, int fd, struct stat *ret_stat);
	/* file_state_read() */
	int (*file_state)(void *context, int fd, struct file_id *ret_id);
	int (*fstatat)(void *context, int dir_fd, const char *path, struct stat *ret_stat);
	ssize_t (*readlinkat)(void *context, int dir_fd, const char *path, char *text, size_t size);
	ssize_t (*pread)(void *context, int fd, void *bytes, size_t size, off_t off);
	struct dirent *(*readdir)(void *context, DIR *directory);
	/* Asks READER, which may be another process. */
	int (*build_id)(void *context, const struct build_id_reader *reader,
		const struct build_id_question *question, struct build_id *ret_id);
	/* RINGS are about to be read; the host may replace each of them for this read. */
	void (*rings)(void *context, struct ring **rings, size_t count);
	void (*note)(void *context, enum host_note note, const void *what);
};

/* NULL = the real system. */
extern const struct host *host_current;

static inline int host_openat(int dir_fd, const char *path, int flags)
{
	const struct host *h = host_current;

	return h ? h->openat(h->context, dir_fd, path, flags) : openat(dir_fd, path, flags);
}

static inline int host_open_regular(
	int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	const struct host *h = host_current;

	if (h)
		return h->open_regular(h->context, dir_fd, path, how, ret_fd);
	if (how == HOST_RESOLVE_AGAIN)
		return open_regular_again(dir_fd, ret_fd);
	return how == HOST_RESOLVE_BELOW ? open_regular_below(dir_fd, path, ret_fd)
					 : open_regular_itself_below(dir_fd, path, ret_fd);
}

static inline int host_fstat(int fd, struct stat *ret_stat)
{
	const struct host *h = host_current;

	return h ? h->fstat(h->context, fd, ret_stat) : fstat(fd, ret_stat);
}

/* Returns 0 or a negative errno. */
static inline int host_file_state(int fd, struct file_id *ret_id)
{
	const struct host *h = host_current;

	return h ? h->file_state(h->context, fd, ret_id) : file_state_read(fd, ret_id);
}

/* Follows symbolic links. */
static inline int host_fstatat(int dir_fd, const char *path, struct stat *ret_stat)
{
	const struct host *h = host_current;

	return h ? h->fstatat(h->context, dir_fd, path, ret_stat)
		 : fstatat(dir_fd, path, ret_stat, 0);
}

static inline ssize_t host_readlinkat(int dir_fd, const char *path, char *text, size_t size)
{
	const struct host *h = host_current;

	return h ? h->readlinkat(h->context, dir_fd, path, text, size)
		 : readlinkat(dir_fd, path, text, size);
}

static inline ssize_t host_pread(int fd, void *bytes, size_t size, off_t off)
{
	const struct host *h = host_current;

	return h ? h->pread(h->context, fd, bytes, size, off) : pread(fd, bytes, size, off);
}

static inline struct dirent *host_readdir(DIR *directory)
{
	const struct host *h = host_current;

	return h ? h->readdir(h->context, directory) : readdir(directory);
}

static inline int host_build_id(const struct build_id_reader *reader,
	const struct build_id_question *question, struct build_id *ret_id)
{
	const struct host *h = host_current;

	return h ? h->build_id(h->context, reader, question, ret_id)
		 : reader->read(reader->context, question, ret_id);
}

static inline void host_rings(struct ring **rings, size_t count)
{
	if (host_current)
		host_current->rings(host_current->context, rings, count);
}

static inline void host_note(enum host_note note, const void *what)
{
	if (host_current)
		host_current->note(host_current->context, note, what);
}
