/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/proc_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "agent/sampler/process/proc_text.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/host.h"
#include "base/io.h"

enum {
	MAX_STAT_BYTES = 2048,
	/* NSpid follows the list of groups: at most 65,536 (NGROUPS_MAX) of eleven bytes. */
	MAX_STATUS_BYTES = 1 << 20,
	MAX_CGROUP_BYTES = 64 * 1024,
	MAX_THREADS_TRIED = 64,
	KERNEL_COMM_BYTES = 16, /* TASK_COMM_LEN, with its NUL */
	/* PF_KTHREAD (include/linux/sched.h), unchanged since 2.6.27 */
	FLAG_KERNEL_THREAD = 0x00200000,
};

int proc_open(int proc_fd, uint32_t pid, int *ret_pid_fd)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", pid);
	fd = host_openat(proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	*ret_pid_fd = fd;
	return 0;
}

static void skip_fields(struct cursor *c, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		while (cursor_left(c) > 0 && *c->at != ' ')
			c->at++;
		proc_text_expect(c, ' ');
	}
}

/* comm has at most 15 bytes, but the kernel shows longer ones here for its own workers. */
static void set_comm(struct proc_stat *stat, const char *comm, size_t length)
{
	length = MIN(length, (size_t)KERNEL_COMM_BYTES - 1);
	memcpy(stat->comm, comm, length);
	stat->comm[length] = 0;
}

/* PID (COMM) STATE PPID …, numbered in proc_pid_stat(5); COMM may hold blanks and parentheses. */
static int parse_stat(const char *text, struct proc_stat *ret_stat)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct proc_stat stat = { 0 };
	struct cursor c;

	if (!open || !close || close < open)
		return -EBADMSG;
	set_comm(&stat, open + 1, (size_t)(close - open - 1));
	c = cursor_over(close + 1, strlen(close + 1));
	proc_text_expect(&c, ' ');
	stat.state = (char)cursor_u8(&c); /* field 3 */
	proc_text_expect(&c, ' ');
	skip_fields(&c, 5); /* 4 to 8 */
	stat.kernel_thread = proc_text_decimal(&c) & FLAG_KERNEL_THREAD;
	skip_fields(&c, 11); /* the end of 9, 10 to 19 */
	stat.threads = (uint32_t)proc_text_decimal(&c);
	skip_fields(&c, 2); /* the end of 20, 21 */
	stat.start_ticks = proc_text_decimal(&c);
	if (c.bad)
		return -EBADMSG;
	*ret_stat = stat;
	return 0;
}

int proc_read_stat(int pid_fd, struct proc_stat *ret_stat)
{
	char text[MAX_STAT_BYTES];
	ssize_t got = foreign_read_text(pid_fd, "stat", text, sizeof(text) - 1);

	if (got < 0)
		return got == -ENOENT ? -ESRCH : (int)got;
	text[got] = 0;
	return parse_stat(text, ret_stat);
}

int proc_read_cgroups(int pid_fd, char id[CONTAINER_ID_BYTES], char pod_uid[POD_UID_BYTES],
	struct cgroup_paths **ret_paths)
{
	autocall(buffer_deinit) struct buffer text;
	const char *line, *end;
	int err;

	buffer_init(&text, MAX_CGROUP_BYTES);
	err = io_read_file(pid_fd, "cgroup", &text);
	if (!err)
		err = cgroup_paths_read((const char *)text.bytes, text.size, ret_paths);
	if (err)
		return err;
	id[0] = pod_uid[0] = 0;
	line = (const char *)text.bytes;
	end = line + text.size;
	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t length = (size_t)((newline ? newline : end) - line);

		if (container_id_of_line(line, length, id)) {
			(void)container_pod_uid_of_line(line, length, pod_uid);
			return 0;
		}
		line += length + 1;
	}
	return 0;
}

int proc_read_namespace_pid(int pid_fd, uint32_t *ret_pid)
{
	autocall(buffer_deinit) struct buffer text;
	uint64_t pid = 0;
	struct cursor c;
	const char *line;
	int err;

	buffer_init(&text, MAX_STATUS_BYTES);
	err = io_read_file(pid_fd, "status", &text);
	if (!err)
		err = buffer_append(&text, "", 1);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	/* The process's name precedes it, but with its newlines escaped. */
	line = strstr((const char *)text.bytes, "\nNSpid:");
	if (!line)
		return -ENOENT;
	line += strlen("\nNSpid:");
	c = cursor_over(line, strcspn(line, "\n"));
	while (cursor_left(&c) > 0) {
		proc_text_expect(&c, '\t');
		pid = proc_text_decimal(&c);
	}
	if (c.bad || pid == 0 || pid > INT32_MAX)
		return -EBADMSG;
	*ret_pid = (uint32_t)pid;
	return 0;
}

/* Opens the thread NAME of TASKS_FD. Returns -ESRCH if it has no memory. */
static int open_thread_with_memory(int tasks_fd, const char *name, int *ret_task_fd)
{
	autoclose int fd = host_openat(tasks_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int maps_fd = -1;
	char first;
	int err;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = foreign_open(
		&(struct foreign_path){ .place = FOREIGN_TEXT, .dir_fd = fd, .name = "maps" },
		&maps_fd);
	if (err)
		return failure_is_transient(err) ? err : -ESRCH;
	if (read(maps_fd, &first, sizeof(first)) <= 0)
		return -ESRCH;
	*ret_task_fd = take_fd(&fd);
	return 0;
}

int proc_open_live_thread(int pid_fd, uint32_t pid, int *ret_task_fd)
{
	autoclosedir DIR *dir = NULL;
	int fd = host_openat(pid_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	int err = 0;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	for (int tried = 0; tried < MAX_THREADS_TRIED;) {
		err = io_next_entry(dir, &entry);
		if (err || !entry)
			break;
		if (entry->d_name[0] == '.' || strtoul(entry->d_name, NULL, 10) == pid)
			continue;
		tried++;
		err = open_thread_with_memory(fd, entry->d_name, ret_task_fd);
		if (!err || failure_is_transient(err))
			return err;
	}
	/* The kernel returns ENOENT for the entries of a process that is gone. */
	return err && err != -ENOENT ? err : -ESRCH;
}
