/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/fake_proc.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "tests/unit/elf_writer.h"

static void require(bool done, const char *what)
{
	if (!done) {
		perror(what);
		abort();
	}
}

void fake_proc_init(struct fake_proc *p)
{
	snprintf(p->path, sizeof(p->path), "/tmp/fathom-test-XXXXXX");
	require(mkdtemp(p->path) != NULL, "mkdtemp");
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(p->fd >= 0, p->path);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_tree(const char *path)
{
	require(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0, path);
}

void fake_proc_deinit(struct fake_proc *p)
{
	close(p->fd);
	remove_tree(p->path);
}

static void entry_path(
	const struct fake_proc *p, uint32_t pid, const char *name, char path[PATH_MAX])
{
	require(snprintf(path, PATH_MAX, "%s/%u/%s", p->path, pid, name) < PATH_MAX, name);
}

void fake_proc_write(struct fake_proc *p, uint32_t pid, const char *name, const char *text)
{
	char path[PATH_MAX];

	entry_path(p, pid, name, path);
	require(io_replace_file(AT_FDCWD, path, text, strlen(text), 0644) == 0, path);
}

static void write_stat(struct fake_proc *p, uint32_t pid, const struct fake_process *process)
{
	char text[512];

	snprintf(text, sizeof(text),
		"%u (%s) %c 1 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 %u 0 %" PRIu64 " 0 0\n", pid,
		process->comm, process->state ? process->state : 'S',
		process->kernel_thread ? 0x00208040u : 0x00400000u,
		process->threads ? process->threads : 1,
		process->start_ticks ? process->start_ticks : 1);
	fake_proc_write(p, pid, "stat", text);
}

static void make_link(struct fake_proc *p, uint32_t pid, const char *name, const char *target)
{
	char path[PATH_MAX];

	entry_path(p, pid, name, path);
	unlink(path);
	require(symlink(target, path) == 0, path);
}

void fake_proc_process(struct fake_proc *p, uint32_t pid, const struct fake_process *process)
{
	char path[PATH_MAX], text[256];

	fake_proc_remove(p, pid);
	entry_path(p, pid, "map_files", path);
	require(io_make_directories(path, 0755) == 0, path);
	write_stat(p, pid, process);
	fake_proc_write(p, pid, "cgroup", process->cgroup ? process->cgroup : "0::/\n");
	if (process->maps)
		fake_proc_write(p, pid, "maps", process->maps);
	if (process->exe)
		make_link(p, pid, "exe", process->exe);
	if (!process->nspid)
		return;
	snprintf(text, sizeof(text), "Name:\t%s\nNSpid:%s\nNSpgid:\t7\t9\n", process->comm,
		process->nspid);
	fake_proc_write(p, pid, "status", text);
}

void fake_proc_map_file(
	struct fake_proc *p, uint32_t pid, uint64_t start, uint64_t end, const char *target)
{
	char name[64];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	make_link(p, pid, name, target);
}

void fake_proc_root(struct fake_proc *p, uint32_t pid, const char *path)
{
	make_link(p, pid, "root", path);
}

void fake_proc_remove(struct fake_proc *p, uint32_t pid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%u", p->path, pid);
	if (access(path, F_OK) == 0)
		remove_tree(path);
}

void fake_proc_elf(
	struct fake_proc *p, const char *name, uint8_t build_id, struct fake_file *ret_file)
{
	struct fake_file file = { .build_id.size = build_id ? BUILD_ID_MAX_BYTES : 0 };
	struct elf_writer w;
	struct stat st;

	memset(file.build_id.bytes, build_id, sizeof(file.build_id.bytes));
	snprintf(file.path, sizeof(file.path), "%s/%s", p->path, name);
	elf_writer_init(&w);
	elf_writer_code(&w, ".text", 0x1000, 0x100);
	if (build_id)
		elf_writer_build_id(&w, 0x3000, file.build_id.bytes, BUILD_ID_MAX_BYTES);
	elf_writer_finish(&w);
	require(io_replace_file(AT_FDCWD, file.path, w.file.bytes, w.file.size, 0755) == 0,
		file.path);
	elf_writer_deinit(&w);
	require(stat(file.path, &st) == 0, file.path);
	file.device = st.st_dev;
	file.inode = st.st_ino;
	file.device_major = major(st.st_dev);
	file.device_minor = minor(st.st_dev);
	*ret_file = file;
}

void fake_maps_line(char *line, size_t size, uint64_t start, uint64_t end, uint64_t file_off,
	const struct fake_file *file)
{
	snprintf(line, size,
		"%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " %02x:%02x %" PRIu64
		"                      %s\n",
		start, end, file_off, file->device_major, file->device_minor, file->inode,
		file->path);
}
