/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a process from /proc. The time is taken before the first read: what the stream tells of
 * times after it is applied on top, again if need be, and what it tells of times before it is
 * known. An exec between our reads can mix two programs, but its record is then newer than that
 * time and begins the generation anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/process/proc_reader.h"
#include "agent/process/table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"

enum { MAX_LINK_BYTES = 4096 };

/* /proc/PID/stat counts in 10 ms (USER_HZ 100), and a little later than the fork record. */
static const uint64_t start_tolerance_ns = UINT64_C(50) * 1000 * 1000;

/* What one reading of /proc found. */
struct reading {
	struct processes *ps;
	int pid_fd;
	int task_fd; /* of a thread with memory: PID_FD, or that of another one */
	uint64_t time_ns; /* taken before it */
	struct proc_stat stat;
	struct mappings *mappings;
	struct module *executable;
	char container_id[CONTAINER_ID_BYTES];
	bool unreadable;
	char root[MAX_LINK_BYTES]; /* of the process, as we see it; "" = ours, or not known */
	size_t root_length;
	/* The program, to be found among the mappings. */
	uint64_t exe_device, exe_inode;
	char exe_path[MAX_LINK_BYTES];
	bool exe_exact; /* `executable` has the program's device and inode */
};

static void reading_deinit(struct reading *r)
{
	mappings_unref(r->mappings);
	if (r->task_fd >= 0 && r->task_fd != r->pid_fd)
		close(r->task_fd);
	if (r->pid_fd >= 0)
		close(r->pid_fd);
}

static void read_root(struct reading *r)
{
	ssize_t length = readlinkat(r->task_fd, "root", r->root, sizeof(r->root) - 1);

	/* The root of another mount namespace that has no place in ours is "/", too. */
	r->root_length = length > 1 && r->root[0] == '/' ? (size_t)length : 0;
	r->root[r->root_length] = 0;
}

/*
 * The process's own name for a file: /proc says where it is from our root. The kernel's records
 * name it from the root of the process (d_path() of the current task).
 */
static const char *own_path(const struct reading *r, const char *path)
{
	size_t length = r->root_length;

	return length && !strncmp(path, r->root, length) && path[length] == '/' ? path + length
										: path;
}

static void read_exe(struct reading *r)
{
	ssize_t length = readlinkat(r->task_fd, "exe", r->exe_path, sizeof(r->exe_path) - 1);
	struct stat st;

	r->exe_path[MAX(length, 0)] = 0;
	if (length <= 0 || fstatat(r->task_fd, "exe", &st, 0))
		return;
	r->exe_device = st.st_dev;
	r->exe_inode = st.st_ino;
}

/*
 * Device and inode decide. Through an overlay they differ from the mapping's; then the link's text
 * is the mapping's name.
 */
static bool is_program(struct reading *r, const struct proc_mapping *mapping)
{
	if (r->exe_exact)
		return false;
	r->exe_exact = r->exe_inode != 0 && mapping->inode == r->exe_inode &&
		       mapping->device == r->exe_device;
	return r->exe_exact ||
	       (!r->executable && r->exe_path[0] == '/' && !strcmp(mapping->path, r->exe_path));
}

static int use_mapping(void *context, const struct proc_mapping *shown)
{
	struct reading *r = context;
	struct proc_mapping mapping = *shown;
	struct module *module;
	bool program;
	int err;

	if (!mapping.executable)
		return 0;
	program = is_program(r, &mapping);
	mapping.path = own_path(r, mapping.path);
	module = table_module(r->ps, r->task_fd, &mapping, NULL, program);
	if (program && module->kind == MODULE_FILE)
		r->executable = module;
	err = table_add_mapping(r->ps, &r->mappings, &mapping, module);
	if (err == -E2BIG)
		metrics_add(r->ps->options.metrics, METRIC_MAPPINGS_REFUSED, 1);
	return err;
}

/* The memory of a main thread that has exited is gone; the other threads still have theirs. */
static int open_task(struct reading *r, uint32_t pid)
{
	if (r->stat.state != 'Z') {
		r->task_fd = r->pid_fd;
		return 0;
	}
	return r->stat.threads > 1 ? proc_open_live_thread(r->pid_fd, pid, &r->task_fd) : -ESRCH;
}

static int read_mappings(struct reading *r)
{
	uint64_t shortages = file_ids_shortages(r->ps->files);
	int err = proc_maps_read(r->task_fd, use_mapping, r);

	if (failure_is_shortage(err))
		return err;
	/* Over a limit of ours, what was read is right. */
	r->unreadable = err && err != -E2BIG;
	/* Files that were not looked at would be other modules than they are. */
	return file_ids_shortages(r->ps->files) == shortages ? 0 : -EMFILE;
}

static int read_process(struct reading *r, uint32_t pid)
{
	int err = proc_open(r->ps->options.proc_fd, pid, &r->pid_fd);

	if (err)
		return err;
	err = proc_read_stat(r->pid_fd, &r->stat);
	if (!err)
		err = open_task(r, pid);
	if (err)
		return err;
	r->mappings = mappings_create();
	if (!r->mappings)
		return -ENOMEM;
	err = proc_read_container_id(r->pid_fd, r->container_id);
	if (failure_is_shortage(err))
		return err;
	if (r->stat.kernel_thread)
		return 0;
	read_root(r);
	read_exe(r);
	return read_mappings(r);
}

/* Whether P is still the program that /proc shows. */
static bool is_same_generation(const struct process *p, const struct reading *r)
{
	if (p->start_ticks && p->start_ticks != r->stat.start_ticks)
		return false;
	if (p->unread)
		return true;
	return r->unreadable || p->executable == r->executable;
}

static void apply(struct processes *ps, struct process *p, struct reading *r)
{
	p->synced_ns = r->time_ns;
	p->stale = p->unread = false;
	p->looked_up = true;
	p->unreadable = r->unreadable;
	p->kernel_thread = r->stat.kernel_thread;
	p->start_ticks = r->stat.start_ticks;
	p->main_exited = r->stat.state == 'Z';
	p->threads = r->stat.threads == 1 && !p->main_exited ? 1 : 0;
	table_set_comm(p, r->stat.comm);
	memcpy(p->container_id, r->container_id, sizeof(p->container_id));
	mappings_unref(p->mappings);
	p->mappings = take(r->mappings);
	if (p->executable != r->executable && !r->unreadable)
		table_set_executable(ps, p, r->executable, own_path(r, r->exe_path));
}

/*
 * The process is gone, and records that told of it were lost. A program that we saw being executed
 * is what it was to its end but for another exec; after a fork, the exec is what was lost.
 */
static void give_up(struct processes *ps, struct process *p, uint64_t time_ns)
{
	struct process *fresh;

	p->stale = false;
	p->looked_up = true;
	p->gone_ns = time_ns;
	if (p->by_exec)
		return;
	table_end(ps, p, ps->time_ns);
	fresh = table_begin(ps, p->pid, 0, NULL);
	if (!fresh)
		return;
	fresh->unreadable = true;
	fresh->looked_up = true;
	fresh->gone_ns = time_ns;
}

/* An entry for what /proc does not (or no longer) show. */
static void begin_unreadable(struct processes *ps, uint32_t pid, uint64_t time_ns)
{
	struct process *p = table_begin(ps, pid, 0, NULL);

	if (!p)
		return;
	p->looked_up = true;
	/* Pid 0 is the idle threads of the CPUs: nowhere in /proc, and nothing to be known. */
	p->kernel_thread = pid == 0;
	p->unreadable = pid != 0;
	p->gone_ns = pid != 0 ? time_ns : 0;
}

/* An entry for what cannot be read now: it is read at its next use. */
static void begin_unread(struct processes *ps, uint32_t pid)
{
	struct process *p = table_begin(ps, pid, 0, NULL);

	if (p)
		p->stale = p->unreadable = p->unread = true;
}

/* Brings PID's entry to what /proc shows at TIME_NS, which is now. -ESRCH: it is not there. */
static int sync_as_of(struct processes *ps, uint32_t pid, uint64_t time_ns)
{
	autocall(reading_deinit) struct reading r = { .ps = ps, .pid_fd = -1, .task_fd = -1 };
	struct process *p = table_live(ps, pid);
	int err;

	r.time_ns = time_ns;
	err = read_process(&r, pid);
	if (err)
		return err;
	if (p && !is_same_generation(p, &r)) {
		table_end(ps, p, ps->time_ns);
		p = table_begin(ps, pid, time_ns, NULL);
	} else if (!p) {
		p = table_begin(ps, pid, 0, NULL);
	}
	if (p)
		apply(ps, p, &r);
	return p ? 0 : -E2BIG;
}

void table_sync(struct processes *ps, uint32_t pid)
{
	uint64_t time_ns = clock_monotonic_ns();
	struct process *p = table_live(ps, pid);
	int err;

	if (p)
		metrics_add(ps->options.metrics, METRIC_PROCESS_RESYNCS, 1);
	file_ids_renew(ps->files);
	err = sync_as_of(ps, pid, time_ns);
	if (err == 0 || table_live(ps, pid) != p)
		return;
	if (p && failure_is_shortage(err))
		return; /* it stays stale */
	if (p)
		give_up(ps, p, time_ns);
	else if (failure_is_shortage(err))
		begin_unread(ps, pid);
	else
		begin_unreadable(ps, pid, time_ns);
}

/* Whether what /proc shows under the pid is P, by the time at which it came to be. */
static bool is_same_process(const struct process *p, const struct proc_stat *stat)
{
	uint64_t boot_offset_ns, started_ns;

	if (p->start_ticks)
		return p->start_ticks == stat->start_ticks;
	if (p->forked_ns == 0)
		return true;
	boot_offset_ns = clock_read_ns(CLOCK_BOOTTIME) - clock_monotonic_ns();
	started_ns = stat->start_ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
	return started_ns <= p->forked_ns + boot_offset_ns + start_tolerance_ns;
}

void table_look_up(struct processes *ps, struct process *p)
{
	char container_id[CONTAINER_ID_BYTES];
	autoclose int pid_fd = -1;
	struct proc_stat stat;
	int err = proc_open(ps->options.proc_fd, p->pid, &pid_fd);

	if (!err)
		err = proc_read_stat(pid_fd, &stat);
	p->looked_up = !failure_is_shortage(err);
	if (err || !is_same_process(p, &stat))
		return;
	p->start_ticks = stat.start_ticks;
	err = proc_read_container_id(pid_fd, container_id);
	p->looked_up = !failure_is_shortage(err);
	if (!err)
		memcpy(p->container_id, container_id, sizeof(p->container_id));
}

bool table_is_gone(struct processes *ps, uint32_t pid)
{
	autoclose int pid_fd = -1;
	struct proc_stat stat;
	int err = proc_open(ps->options.proc_fd, pid, &pid_fd);

	if (!err)
		err = proc_read_stat(pid_fd, &stat);
	/* Any other failure is ours. */
	if (err)
		return err == -ESRCH;
	return (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
}

/* The next pid in an open /proc; 0 at the end. */
static uint32_t next_pid(DIR *dir)
{
	const struct dirent *entry;

	while ((entry = readdir(dir))) {
		unsigned long pid = strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && pid <= INT32_MAX)
			return (uint32_t)pid;
	}
	return 0;
}

static int scan_all(struct processes *ps)
{
	autoclosedir DIR *dir = NULL;
	int fd = openat(ps->options.proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint32_t pid;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while ((pid = next_pid(dir))) {
		if (sync_as_of(ps, pid, clock_monotonic_ns()) == -E2BIG)
			return -E2BIG;
	}
	return 0;
}

int processes_scan(struct processes *ps, const uint32_t *pids, size_t pid_count)
{
	file_ids_renew(ps->files);
	if (pid_count == 0)
		return scan_all(ps);
	for (size_t i = 0; i < pid_count; i++) {
		if (sync_as_of(ps, pids[i], clock_monotonic_ns()) == -E2BIG)
			return -E2BIG;
	}
	return 0;
}
