/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a process from /proc. The time is taken before the first read: records newer than that are
 * applied on top, a second time if need be; older ones are known already. An exec during the
 * reading can mix two programs, but its record is then newer than that time and begins a new
 * generation.
 *
 * What was shown waits at the process until the stream has reached that time. An exec that the
 * stream reports before makes it superfluous.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/sampler/process/proc_reader.h"
#include "agent/sampler/process/table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/host.h"
#include "base/io.h"

enum { MAX_LINK_BYTES = 4096 };

/*
 * /proc/PID/stat counts in units of 10 ms (USER_HZ 100), and is a little later than the fork
 * record.
 */
static const uint64_t start_tolerance_ns = UINT64_C(50) * 1000 * 1000;

/* One reading of /proc. */
struct reading {
	struct processes *ps;
	int pid_fd;
	int task_fd; /* of a thread with memory; may be PID_FD */
	struct shown *shown; /* what it found */
	char root[MAX_LINK_BYTES]; /* of the process, as we see it; "" = ours, or not known */
	size_t root_length;
	/* The program, to be found among the mappings. */
	uint64_t exe_device, exe_inode;
	char exe_path[MAX_LINK_BYTES];
	bool exe_exact; /* `executable` has the program's device and inode */
};

void table_shown_free(struct shown *shown)
{
	if (!shown)
		return;
	mappings_unref(shown->mappings);
	cgroup_paths_unref(shown->cgroups);
	free(shown->exe_path);
	free(shown);
}

static void reading_deinit(struct reading *r)
{
	table_shown_free(r->shown);
	if (r->task_fd >= 0 && r->task_fd != r->pid_fd)
		close(r->task_fd);
	if (r->pid_fd >= 0)
		close(r->pid_fd);
}

static void read_root(struct reading *r)
{
	ssize_t length = foreign_read_link(r->task_fd, "root", r->root, sizeof(r->root) - 1);

	/* The root of another mount namespace that is not visible in ours reads as "/", too. */
	r->root_length = length > 1 && r->root[0] == '/' ? (size_t)length : 0;
	r->root[r->root_length] = 0;
}

/*
 * PATH as the process itself names it. /proc shows paths as seen from our root, the kernel's
 * records as seen from the root of the process (d_path() of the current task).
 */
static const char *own_path(const struct reading *r, const char *path)
{
	size_t length = r->root_length;

	return length && !strncmp(path, r->root, length) && path[length] == '/' ? path + length
										: path;
}

static void read_exe(struct reading *r)
{
	ssize_t length = foreign_read_link(r->task_fd, "exe", r->exe_path, sizeof(r->exe_path) - 1);
	struct stat st;

	r->exe_path[MAX(length, 0)] = 0;
	if (length <= 0 || foreign_stat_at(r->task_fd, "exe", &st))
		return;
	r->exe_device = st.st_dev;
	r->exe_inode = st.st_ino;
}

/*
 * Device and inode decide. Through an overlay they differ from the mapping's; then the text of the
 * link must be the mapping's name.
 */
static bool is_program(struct reading *r, const struct proc_mapping *mapping)
{
	if (r->exe_exact)
		return false;
	r->exe_exact = r->exe_inode != 0 && mapping->inode == r->exe_inode &&
		       mapping->device == r->exe_device;
	return r->exe_exact || (!r->shown->executable && r->exe_path[0] == '/' &&
				       !strcmp(mapping->path, r->exe_path));
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
		r->shown->executable = module;
	err = table_add_mapping(&r->shown->mappings, &mapping, module);
	if (err == -E2BIG)
		metrics_add(r->ps->options.metrics, METRIC_MAPPINGS_REFUSED, 1);
	return err;
}

/* The memory of a main thread that has exited is gone; the other threads still have theirs. */
static int open_task(struct reading *r, uint32_t pid)
{
	if (r->shown->stat.state != 'Z') {
		r->task_fd = r->pid_fd;
		return 0;
	}
	return r->shown->stat.threads > 1 ? proc_open_live_thread(r->pid_fd, pid, &r->task_fd)
					  : -ESRCH;
}

static int processes_sync_read_mappings(struct reading *r)
{
	uint64_t shortages = table_shortages(r->ps);
	int err = proc_maps_read(r->task_fd, use_mapping, r);

	if (failure_is_shortage(err))
		return err;
	/* What was read before a limit of ours was reached is right. */
	r->shown->unreadable = err && err != -E2BIG;
	/* Files not read and modules not created would stay wrong until records are lost. */
	return table_shortages(r->ps) == shortages ? 0 : -EMFILE;
}

static int read_process(struct reading *r, uint32_t pid)
{
	struct shown *shown = r->shown;
	int err = proc_open(r->ps->options.proc_fd, pid, &r->pid_fd);

	if (err)
		return err;
	err = proc_read_stat(r->pid_fd, &shown->stat);
	if (!err)
		err = open_task(r, pid);
	if (err)
		return err;
	err = proc_read_cgroups(r->pid_fd, shown->container_id, shown->pod_uid, &shown->cgroups);
	if (failure_is_shortage(err))
		return err;
	if (shown->stat.kernel_thread)
		return 0;
	read_root(r);
	read_exe(r);
	return processes_sync_read_mappings(r);
}

int table_read(struct processes *ps, uint32_t pid, struct shown **ret_shown)
{
	autocall(reading_deinit) struct reading r = { .ps = ps, .pid_fd = -1, .task_fd = -1 };
	int err;

	r.shown = calloc(1, sizeof(*r.shown));
	if (!r.shown)
		return -ENOMEM;
	r.shown->time_ns = clock_monotonic_ns();
	r.shown->mappings = mappings_create();
	if (!r.shown->mappings)
		return -ENOMEM;
	err = read_process(&r, pid);
	if (err)
		return err;
	r.shown->exe_path = strdup(own_path(&r, r.exe_path));
	if (!r.shown->exe_path)
		return -ENOMEM;
	*ret_shown = take(r.shown);
	return 0;
}

/* ---- what was shown ------------------------------------------------------------------------- */

bool table_is_same_process(const struct process *p, const struct proc_stat *stat)
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

int table_doubt(struct process *p, const struct shown *shown)
{
	struct mappings *common =
		shown ? mappings_common(p->mappings, shown->mappings) : mappings_create();

	if (!common)
		return -ENOMEM;
	mappings_unref(p->mappings);
	p->mappings = common;
	return 0;
}

/*
 * Whether P is the program that /proc showed. EXEC_ID: of a sample taken after the reading, with no
 * exec in between; or NULL.
 */
static bool is_same_generation(
	const struct process *p, const struct shown *shown, const uint32_t *exec_id)
{
	bool same_exec = exec_id && p->exec_known && *exec_id == p->exec_id;

	if (p->start_ticks && p->start_ticks != shown->stat.start_ticks)
		return false;
	if (p->unproven)
		return same_exec;
	if (exec_id && p->exec_known && !same_exec)
		return false;
	return shown->unreadable || p->executable == shown->executable;
}

static void tell_mapped(struct processes *ps, struct process *p)
{
	if (!ps->options.mapped)
		return;
	for (size_t i = 0; i < mappings_count(p->mappings); i++)
		ps->options.mapped(ps->options.context, p, mappings_at(p->mappings, i));
}

/* Applies SHOWN to P and frees it. */
static void processes_sync_apply(struct processes *ps, struct process *p, struct shown *shown)
{
	p->synced_ns = shown->time_ns;
	p->stale = false;
	p->unproven = false;
	p->looked_up = true;
	p->unreadable = shown->unreadable;
	p->kernel_thread = shown->stat.kernel_thread;
	p->start_ticks = shown->stat.start_ticks;
	p->main_exited = shown->stat.state == 'Z';
	p->threads = shown->stat.threads == 1 && !p->main_exited ? 1 : 0;
	/* The next sample sets it: the process may have executed the same program again. */
	p->exec_known = false;
	table_set_comm(p, shown->stat.comm);
	memcpy(p->container_id, shown->container_id, sizeof(p->container_id));
	memcpy(p->pod_uid, shown->pod_uid, sizeof(p->pod_uid));
	if (shown->cgroups)
		table_set_cgroups(p, take(shown->cgroups));
	mappings_unref(p->mappings);
	p->mappings = take(shown->mappings);
	free(take(p->hidden));
	if (p->executable != shown->executable && !shown->unreadable)
		table_set_executable(ps, p, shown->executable, shown->exe_path);
	table_shown_free(shown);
	tell_mapped(ps, p);
}

/* Applies SHOWN, which is taken, to PID. Returns -E2BIG over the limit. */
static int bring_to(
	struct processes *ps, uint32_t pid, struct shown *shown, const uint32_t *exec_id)
{
	struct process *p = table_live(ps, pid);

	if (p && !is_same_generation(p, shown, exec_id)) {
		table_supersede(ps, p, ps->time_ns);
		p = table_begin(ps, pid, shown->time_ns, NULL);
	} else if (!p) {
		p = table_begin(ps, pid, 0, NULL);
	}
	if (p)
		processes_sync_apply(ps, p, shown);
	else
		table_shown_free(shown);
	return p ? 0 : -E2BIG;
}

void table_catch_up(struct processes *ps, uint32_t pid, uint64_t time_ns, const uint32_t *exec_id)
{
	struct process *p = table_live(ps, pid);

	if (p && p->shown && p->shown->time_ns < time_ns)
		(void)bring_to(ps, pid, take(p->shown), exec_id);
}

void table_set_cgroups(struct process *p, struct cgroup_paths *cgroups)
{
	cgroup_paths_unref(p->cgroups);
	p->cgroups = cgroups;
}

void table_look_up(struct processes *ps, struct process *p)
{
	char container_id[CONTAINER_ID_BYTES], pod_uid[POD_UID_BYTES];
	struct cgroup_paths *cgroups = NULL;
	autoclose int pid_fd = -1;
	struct proc_stat stat;
	int err = proc_open(ps->options.proc_fd, p->pid, &pid_fd);

	if (!err)
		err = proc_read_stat(pid_fd, &stat);
	p->looked_up = !failure_is_transient(err);
	if (err || !table_is_same_process(p, &stat))
		return;
	p->start_ticks = stat.start_ticks;
	err = proc_read_cgroups(pid_fd, container_id, pod_uid, &cgroups);
	p->looked_up = !failure_is_transient(err);
	if (err)
		return;
	memcpy(p->container_id, container_id, sizeof(p->container_id));
	memcpy(p->pod_uid, pod_uid, sizeof(p->pod_uid));
	table_set_cgroups(p, cgroups);
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

/* The pid of an ENTRY of /proc; 0 if it is not a process's. */
static uint32_t entry_pid(const struct dirent *entry)
{
	unsigned long pid = strtoul(entry->d_name, NULL, 10);
	bool is_number = entry->d_name[0] >= '1' && entry->d_name[0] <= '9';

	return is_number && pid <= INT32_MAX ? (uint32_t)pid : 0;
}

int table_scan(struct processes *ps, uint32_t pid)
{
	struct shown *shown;
	int err = table_read(ps, pid, &shown);

	return err ? err : bring_to(ps, pid, shown, NULL);
}

int table_each_pid(struct processes *ps, table_pid_fn *fn, void *context)
{
	autoclosedir DIR *dir = NULL;
	int fd = host_openat(ps->options.proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	int err;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (!(err = io_next_entry(dir, &entry)) && entry) {
		uint32_t pid = entry_pid(entry);

		err = pid ? fn(ps, pid, context) : 0;
		if (err)
			break;
	}
	return err;
}

static int scan_listed(struct processes *ps, uint32_t pid, void *context)
{
	(void)context;
	return table_scan(ps, pid) == -E2BIG ? -E2BIG : 0;
}

int processes_scan(struct processes *ps, const uint32_t *pids, size_t pid_count)
{
	file_ids_renew(ps->files);
	if (pid_count == 0)
		return table_each_pid(ps, scan_listed, NULL);
	for (size_t i = 0; i < pid_count; i++) {
		if (table_scan(ps, pids[i]) == -E2BIG)
			return -E2BIG;
	}
	return 0;
}
