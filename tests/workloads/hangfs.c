/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system that stops answering when told to, over the kernel's protocol itself
 * (linux/fuse.h): hangfs SOURCE MOUNTPOINT KINDS [NAME] shows the files of the directory SOURCE (no
 * subdirectories), read-only, at MOUNTPOINT in a mount namespace of its own, where other programs
 * get with `nsenter -m -t PID`. After SIGUSR1 the requests of KINDS
 * (`open,read,getattr,statfs,lookup,flush`, or `all` of them) get no answer, and whoever made them
 * waits where no signal ends it. `flush` is what each close() asks. With NAME only processes of
 * that name (as in /proc/PID/comm) wait. SIGUSR2 answers them all. When this program ends, in
 * whatever way, the kernel aborts the connection, and all waits end in errors. Only descendants of
 * this program's parent, the test, are made to wait: other agents on the machine are not disturbed.
 *
 * Prints `ready` when it is mounted, `hangs` once SIGUSR1 is obeyed, and `kept KIND PID` for each
 * request that is left unanswered.
 * Nothing is cached but pages of mappings: each open(), read(), fstat() and lookup of a name asks
 * this program.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	MAX_NAMES = 1024,
	MAX_KEPT = 4096,
	REQUEST_BYTES = FUSE_MIN_READ_BUFFER + 4096,
	READ_BYTES = 128 << 10,
	ROOT = FUSE_ROOT_ID,
};

static const struct {
	uint32_t opcode;
	const char *name;
} kinds[] = {
	{ FUSE_OPEN, "open" },
	{ FUSE_READ, "read" },
	{ FUSE_GETATTR, "getattr" },
	{ FUSE_STATFS, "statfs" },
	{ FUSE_LOOKUP, "lookup" },
	{ FUSE_FLUSH, "flush" },
};

enum {
	KINDS = sizeof(kinds) / sizeof(*kinds),
};

struct request {
	struct fuse_in_header header;
	char body[REQUEST_BYTES - sizeof(struct fuse_in_header)];
};

static struct {
	int fuse, source;
	const char *hanging;
	const char *comm; /* of the processes that wait; NULL = all */
	bool hangs;
	char *names[MAX_NAMES]; /* of node i + ROOT + 1 */
	size_t name_count;
	struct request *kept[MAX_KEPT];
	size_t kept_count;
} fs;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void reply(const struct request *r, int error, const void *data, size_t bytes)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + bytes),
		.error = -error,
		.unique = r->header.unique };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)(uintptr_t)data, bytes } };

	/* ENOENT: the request was interrupted meanwhile. */
	if (writev(fs.fuse, parts, 2) < 0 && errno != ENOENT)
		die("hangfs: reply");
}

static void reply_error(const struct request *r, int error)
{
	reply(r, error, NULL, 0);
}

/* 0 for a node without a name in the table. */
static const char *name_of(uint64_t node)
{
	return node == ROOT                      ? "."
	       : node - ROOT - 1 < fs.name_count ? fs.names[node - ROOT - 1]
						 : NULL;
}

static uint64_t node_of(const char *name)
{
	for (size_t i = 0; i < fs.name_count; i++)
		if (!strcmp(fs.names[i], name))
			return i + ROOT + 1;
	if (fs.name_count == MAX_NAMES)
		die("hangfs: too many names");
	fs.names[fs.name_count] = strdup(name);
	return ++fs.name_count + ROOT;
}

static int attributes(uint64_t node, struct fuse_attr *ret_attr)
{
	struct stat st;
	const char *name = name_of(node);

	if (!name || fstatat(fs.source, name, &st, AT_SYMLINK_NOFOLLOW))
		return ENOENT;
	*ret_attr = (struct fuse_attr){
		.ino = node,
		.size = (uint64_t)st.st_size,
		.blocks = (uint64_t)st.st_blocks,
		.blksize = 4096,
		.mtime = (uint64_t)st.st_mtim.tv_sec,
		.mtimensec = (uint32_t)st.st_mtim.tv_nsec,
		.ctime = (uint64_t)st.st_ctim.tv_sec,
		.ctimensec = (uint32_t)st.st_ctim.tv_nsec,
		.mode = st.st_mode,
		.nlink = 1,
		.uid = st.st_uid,
		.gid = st.st_gid,
	};
	return 0;
}

static void do_init(const struct request *r)
{
	const struct fuse_init_in *in = (const void *)r->body;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.flags = in->flags & FUSE_ASYNC_READ,
		.max_background = 64,
		.congestion_threshold = 48,
		.max_write = 4096,
		.time_gran = 1,
	};

	reply(r, 0, &out, sizeof(out));
}

static void do_lookup(const struct request *r)
{
	struct fuse_entry_out out = { 0 };
	struct stat st;

	if (strchr(r->body, '/') || fstatat(fs.source, r->body, &st, AT_SYMLINK_NOFOLLOW)) {
		reply_error(r, ENOENT);
		return;
	}
	out.nodeid = node_of(r->body);
	if (attributes(out.nodeid, &out.attr))
		reply_error(r, ENOENT);
	else
		reply(r, 0, &out, sizeof(out));
}

static void do_getattr(const struct request *r)
{
	struct fuse_attr_out out = { 0 };
	int error = attributes(r->header.nodeid, &out.attr);

	reply(r, error, &out, error ? 0 : sizeof(out));
}

static void do_open(const struct request *r)
{
	const char *name = name_of(r->header.nodeid);
	int fd = name ? openat(fs.source, name, O_RDONLY | O_CLOEXEC) : -1;
	struct fuse_open_out out = { .fh = (uint64_t)fd };

	/* Direct: read() asks this program even when the page is cached for a mapping. */
	if (r->header.opcode == FUSE_OPEN)
		out.open_flags = FOPEN_DIRECT_IO | FOPEN_KEEP_CACHE;
	if (fd < 0)
		reply_error(r, ENOENT);
	else
		reply(r, 0, &out, sizeof(out));
}

static void do_read(const struct request *r)
{
	static char data[READ_BYTES];
	const struct fuse_read_in *in = (const void *)r->body;
	size_t bytes = in->size < sizeof(data) ? in->size : sizeof(data);
	ssize_t got = pread((int)in->fh, data, bytes, (off_t)in->offset);

	if (got < 0)
		reply_error(r, errno);
	else
		reply(r, 0, data, (size_t)got);
}

static void do_release(const struct request *r)
{
	const struct fuse_release_in *in = (const void *)r->body;

	close((int)in->fh);
	reply_error(r, 0);
}

static void do_statfs(const struct request *r)
{
	struct fuse_statfs_out out = { .st = { .bsize = 4096, .frsize = 4096, .namelen = 255 } };

	reply(r, 0, &out, sizeof(out));
}

static void answer(const struct request *r)
{
	switch (r->header.opcode) {
	case FUSE_INIT:
		do_init(r);
		break;
	case FUSE_LOOKUP:
		do_lookup(r);
		break;
	case FUSE_GETATTR:
		do_getattr(r);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		do_open(r);
		break;
	case FUSE_READ:
		do_read(r);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		do_release(r);
		break;
	case FUSE_FLUSH: /* never ENOSYS, after which the kernel asks no more */
		reply_error(r, 0);
		break;
	case FUSE_STATFS:
		do_statfs(r);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* these have no answer */
	default:
		reply_error(r, ENOSYS);
	}
}

/* Reads /proc/PID/NAME; an empty text if the process or thread is gone. */
static void read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[40];
	int fd;
	ssize_t got;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, size - 1);
	text[got > 0 ? got : 0] = 0;
	if (fd >= 0)
		close(fd);
}

/*
 * The parent of a process or thread; 0 if it is gone. Not from /proc/PID/stat: that may wait for an
 * execve() of the process, which may wait for us.
 */
static pid_t parent_of(pid_t pid)
{
	char text[512];
	const char *line;

	read_proc(pid, "status", text, sizeof(text));
	line = strstr(text, "\nPPid:");
	return line ? (pid_t)strtol(line + strlen("\nPPid:"), NULL, 10) : 0;
}

static bool is_of_the_test(pid_t pid)
{
	pid_t test = getppid();

	while (pid > 1 && pid != test)
		pid = parent_of(pid);
	return pid == test;
}

static bool has_the_name(pid_t pid)
{
	char text[32];

	if (!fs.comm)
		return true;
	read_proc(pid, "comm", text, sizeof(text));
	text[strcspn(text, "\n")] = 0;
	return !strcmp(text, fs.comm);
}

/* The index in kinds[] of a request that gets no answer now, else -1. */
static int hanging_kind(const struct request *r)
{
	for (int i = 0; fs.hangs && i < KINDS; i++)
		if (kinds[i].opcode == r->header.opcode &&
			(!strcmp(fs.hanging, "all") || strstr(fs.hanging, kinds[i].name)) &&
			has_the_name((pid_t)r->header.pid) && is_of_the_test((pid_t)r->header.pid))
			return i;
	return -1;
}

static void handle_request(void)
{
	static struct request r;
	ssize_t got = read(fs.fuse, &r, sizeof(r));
	int kind;

	if (got < 0 && errno == ENODEV) /* unmounted, or aborted */
		exit(0);
	if (got < (ssize_t)sizeof(r.header)) {
		if (errno == EAGAIN || errno == EINTR || errno == ENOENT)
			return;
		die("hangfs: request");
	}
	kind = hanging_kind(&r);
	if (kind < 0 || fs.kept_count == MAX_KEPT) {
		answer(&r);
		return;
	}
	fs.kept[fs.kept_count] = malloc(sizeof(r));
	memcpy(fs.kept[fs.kept_count++], &r, sizeof(r));
	printf("kept %s %u\n", kinds[kind].name, r.header.pid);
}

static void answer_kept(void)
{
	for (size_t i = 0; i < fs.kept_count; i++) {
		answer(fs.kept[i]);
		free(fs.kept[i]);
	}
	fs.kept_count = 0;
}

static void mount_at(const char *where)
{
	char options[128];

	fs.fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fs.fuse < 0 || unshare(CLONE_NEWNS) ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("hangfs: namespace");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other",
		fs.fuse);
	if (mount("hangfs", where, "fuse.hangfs", MS_NOSUID | MS_NODEV, options))
		die("hangfs: mount");
}

static int signals_of(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	struct pollfd waited[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo told;

	if (argc != 4 && argc != 5) {
		fprintf(stderr, "usage: hangfs SOURCE MOUNTPOINT KINDS [NAME]\n");
		return 2;
	}
	/* A test that is killed leaves no file system behind that nobody can release. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	fs.hanging = argv[3];
	fs.comm = argc == 5 ? argv[4] : NULL;
	fs.source = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fs.source < 0)
		die(argv[1]);
	waited[1].fd = signals_of();
	mount_at(argv[2]);
	waited[0].fd = fs.fuse;
	for (bool ready = false;;) {
		if (poll(waited, 2, -1) < 0)
			die("hangfs: poll");
		if (waited[0].revents)
			handle_request();
		if (!ready)
			puts("ready"); /* the kernel's first request was answered */
		ready = true;
		if (!waited[1].revents || read(waited[1].fd, &told, sizeof(told)) != sizeof(told))
			continue;
		fs.hangs = told.ssi_signo == SIGUSR1;
		if (fs.hangs)
			puts("hangs");
		else
			answer_kept();
	}
}
