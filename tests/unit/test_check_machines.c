/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom check` on machines of all kinds: which features are missing, what it prints, and its exit
 * status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/commands/check.h"
#include "agent/commands/commands.h"
#include "agent/daemon/daemon.h"
#include "agent/sampler/collect/attach_probe.h"
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/collect/perf_event.h"
#include "base/cleanup.h"
#include "base/host.h"
#include "base/private_mount.h"

/* A machine. The functions below replace the program's and the C library's, and answer from it.
 */
static struct machine {
	const char *release, *lockdown, *kallsyms, *kptr_restrict, *paranoid, *status, *maps,
		*label; /* NULL = none */
	int btf; /* errno of reading it */
	ino_t pidns; /* 0 = no /proc */
	int cpu_clock, cycles, output; /* errors of opening events; 0 = none */
	bool build_ids;
	int vma, create, start, uprobe_multi, fentry; /* errors */
	bool tables;
	const char *tracefs; /* where it is mounted; NULL = nowhere */
	const char *sched_switch, *functions; /* its files */
	const char *kprobe_type; /* of events; NULL = none */
	int kprobe_multi, kprobe_session; /* errors */
	uid_t uid;
	unsigned int destroyed; /* samplers */
} machine;

uid_t geteuid(void)
{
	return machine.uid;
}

int uname(struct utsname *ret)
{
	*ret = (struct utsname){ .machine = "pdp11" };
	snprintf(ret->release, sizeof(ret->release), "%s", machine.release);
	return 0;
}

int access(const char *path, int mode)
{
	if (strcmp(path, "/sys/kernel/btf/vmlinux") != 0)
		return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
	errno = machine.btf;
	return machine.btf ? -1 : 0;
}

int stat(const char *path, struct stat *ret)
{
	if (strcmp(path, "/proc/self/ns/pid") != 0)
		return fstatat(AT_FDCWD, path, ret, 0);
	*ret = (struct stat){ .st_ino = machine.pidns };
	errno = ENOENT;
	return machine.pidns ? 0 : -1;
}

int statfs(const char *path, struct statfs *ret)
{
	*ret = (struct statfs){ .f_type = SYSFS_MAGIC };
	if (machine.tracefs && !strcmp(path, machine.tracefs))
		ret->f_type = TRACEFS_MAGIC;
	return 0;
}

static int open_text(const char *text)
{
	int fd = text ? memfd_create("text", MFD_CLOEXEC) : -1;

	if (fd < 0) {
		errno = EACCES;
		return -1;
	}
	(void)!write(fd, text, strlen(text));
	lseek(fd, 0, SEEK_SET);
	return fd;
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");
	int fd;

	if (strcmp(path, "/proc/self/status") != 0)
		return next(path, mode);
	fd = open_text(machine.status);
	return fd < 0 ? NULL : fdopen(fd, mode);
}

static int machine_openat(void *context, int dir_fd, const char *path, int flags)
{
	const struct {
		const char *end, *text;
	} files[] = {
		{ "/security/lockdown", machine.lockdown },
		{ "/proc/kallsyms", machine.kallsyms },
		{ "/kptr_restrict", machine.kptr_restrict },
		{ "/perf_event_paranoid", machine.paranoid },
		{ "/events/sched/sched_switch/id", machine.sched_switch },
		{ "/available_filter_functions", machine.functions },
		{ "/devices/kprobe/type", machine.kprobe_type },
		{ "/maps", machine.maps },
		{ "/proc/self/attr/current", machine.label },
	};

	(void)context;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t length = strlen(path), end = strlen(files[i].end);

		if (length >= end && !strcmp(path + length - end, files[i].end))
			return open_text(files[i].text);
	}
	return openat(dir_fd, path, flags);
}

static ssize_t machine_pread(void *context, int fd, void *bytes, size_t size, off_t off)
{
	(void)context;
	return pread(fd, bytes, size, off);
}

/* Only /proc is listed: process 1, which does not count, and two others. */
static struct dirent *machine_readdir(void *context, DIR *directory)
{
	static const char *const names[] = { "1", "sys", "4711", "4712", NULL };
	static struct dirent entry;
	static size_t at;
	const char *name = names[at++ % ARRAY_SIZE(names)];

	(void)context;
	(void)directory;
	if (name)
		snprintf(entry.d_name, sizeof(entry.d_name), "%s", name);
	return name ? &entry : NULL;
}

int perf_event_open_sampling(int cpu, const struct collect_options *options)
{
	int err = options->event == COLLECT_CYCLES ? machine.cycles : machine.cpu_clock;

	assert_true(cpu >= 0);
	return err ? err : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int perf_event_open_output(int cpu, uint32_t watermark_bytes, bool *build_ids)
{
	assert_true(cpu >= 0 && watermark_bytes > 0 && *build_ids);
	*build_ids = machine.build_ids;
	return machine.output ? machine.output : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int mapping_probe(struct kernel_types *types)
{
	(void)types;
	return machine.vma;
}

int attach_probe_uprobe_multi(void)
{
	return machine.uprobe_multi;
}

int attach_probe_kprobe_multi(bool session)
{
	return session ? machine.kprobe_session : machine.kprobe_multi;
}

/* No file system is mounted for the question. */
int private_mount_open(const char *kind, const char *path)
{
	(void)kind;
	(void)path;
	return -EPERM;
}

bool mapping_probe_own(uint64_t address, struct abi_mapping *ret_mapping)
{
	(void)address;
	(void)ret_mapping;
	return false;
}

int attach_probe_fentry(void)
{
	return machine.fentry;
}

int collect_create(
	const struct collect_options *options, struct collect **ret_collect, const char **ret_step)
{
	/* The one for waits samples nobody. */
	assert_true(options->user && options->kernel && options->probes && options->metrics);
	assert_int_equal(options->off_cpu_share == 1, options->filter.filter_tgids);
	if (machine.create) {
		*ret_step = "load BPF";
		return machine.create;
	}
	*ret_collect = malloc(1);
	return 0;
}

/* Of the row of `trace`, which `check` does not ask for. */
uint64_t collect_counter(const struct collect *collect, enum abi_counter counter)
{
	(void)collect;
	(void)counter;
	return 0;
}

int collect_start(struct collect *collect)
{
	assert_non_null(collect);
	return machine.start;
}

struct tables *collect_tables(const struct collect *collect)
{
	return machine.tables ? (struct tables *)(uintptr_t)collect : NULL;
}

size_t collect_cpu_count(const struct collect *collect)
{
	(void)collect;
	return 7;
}

void collect_destroy(struct collect *collect)
{
	machine.destroyed += collect != NULL;
	free(collect);
}

/* No machine has settings that are checked. */
int daemon_check(const struct config *config, char **ret_message)
{
	(void)config;
	(void)ret_message;
	fail_msg("settings are checked");
	return -ENOSYS;
}

/* ---- the test -------------------------------------------------------------------------------- */

static const struct host host = {
	.openat = machine_openat, .pread = machine_pread, .readdir = machine_readdir
};

static const struct machine good = {
	.release = "6.1.0-rc1",
	.lockdown = "[none] integrity confidentiality\n",
	.kallsyms = "ffffffff81000000 T _text\n",
	.kptr_restrict = "1\n",
	.paranoid = "2\n",
	.status = "Name:\tcheck\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n",
	.maps = "55d0c8a00000-55d0c8a2c000 r--p 00000000 fe:00 4711 /usr/sbin/init\n",
	.pidns = 0xeffffffc,
	.uid = 1000,
	.build_ids = true,
	.tables = true,
	.tracefs = "/sys/kernel/tracing",
	.sched_switch = "314\n",
	.functions = "do_one_initcall\n",
	.kprobe_type = "8\n",
};

static struct check_feature features[CHECK_FEATURES];

static int setup(void **state)
{
	(void)state;
	machine = good;
	host_current = &host;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	host_current = NULL;
	return 0;
}

/* The text printed for the feature NAME. */
static void expect(const char *name, enum check_state state, const char *why, const char *fix)
{
	int count = check_features(features);

	for (int i = 0; i < count; i++) {
		if (strcmp(features[i].name, name) != 0)
			continue;
		assert_int_equal(features[i].state, state);
		assert_non_null(strstr(features[i].why, why));
		assert_non_null(strstr(features[i].fix, fix));
		assert_int_equal(state == CHECK_OK, !*features[i].fix);
		return;
	}
	fail_msg("no feature %s", name);
}

/* The advice for the feature NAME does not contain TEXT. */
static void expect_not(const char *name, const char *text)
{
	int count = check_features(features);

	for (int i = 0; i < count; i++) {
		if (!strcmp(features[i].name, name))
			assert_null(strstr(features[i].fix, text));
	}
}

static void root_is_not_told_to_be_root(void **state)
{
	(void)state;
	machine.uid = 0;
	machine.status = "CapEff:\t0\n";
	machine.cpu_clock = machine.cycles = machine.uprobe_multi = machine.fentry = -EPERM;
	machine.kprobe_multi = machine.kprobe_session = -EPERM;
	machine.functions = "";
	for (int i = 0, count = check_features(features); i < count; i++) {
		if (strcmp(features[i].name, "kallsyms") != 0)
			assert_null(strstr(features[i].fix, "run as root"));
	}
	expect("cpu-clock", CHECK_MISSING, "not permitted", "--privileged");
}

static void kernels_that_are_new_enough_are_not_too_old(void **state)
{
	(void)state;
	machine.release = "6.18.5";
	machine.vma = machine.uprobe_multi = machine.kprobe_multi = machine.kprobe_session =
		-EINVAL;
	machine.build_ids = false;
	for (int i = 0, count = check_features(features); i < count; i++)
		assert_null(strstr(features[i].fix, "or newer"));
}

static void nothing_is_missing_on_a_good_machine(void **state)
{
	int count = check_features(features);

	(void)state;
	assert_int_equal(count, CHECK_FEATURES);
	for (int i = 0; i < count; i++)
		assert_int_equal(features[i].state, CHECK_OK);
	assert_int_equal(machine.destroyed, 2);
}

static void kernels(void **state)
{
	static const struct {
		const char *release;
		bool old;
	} cases[] = { { "5.10.0", false }, { "5.9.16", true }, { "4.19.0", true },
		{ "5.100", false }, { "6.0", false }, { "10.1", false } };

	(void)state;
	expect("kernel", CHECK_OK, "Linux 6.1.0-rc1 pdp11", "");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		machine.release = cases[i].release;
		expect("kernel", cases[i].old ? CHECK_DEGRADED : CHECK_OK, cases[i].release,
			cases[i].old ? "use Linux 5.10" : "");
	}
	machine.btf = EACCES;
	expect("btf", CHECK_MISSING, "/sys/kernel/btf/vmlinux: Permission denied", "CONFIG_DEBUG");
}

static void capabilities(void **state)
{
	static const struct {
		const char *bits;
		enum check_state state;
		const char *why;
	} cases[] = {
		/* SYS_ADMIN (21) includes the capabilities that were split off from it. */
		{ "0000000000280004", CHECK_OK, "all that fathom uses" },
		{ "0000000000200004", CHECK_DEGRADED, "without CAP_SYS_PTRACE" },
		{ "0000000000280000", CHECK_DEGRADED, "without CAP_DAC_READ_SEARCH" },
		/* BPF 39, PERFMON 38, CHECKPOINT_RESTORE 40, SYSLOG 34 */
		{ "000001c400080004", CHECK_OK, "all that fathom uses" },
		{ "0000014400080004", CHECK_MISSING, "without CAP_BPF" },
		{ "0000018400080004", CHECK_MISSING, "without CAP_PERFMON" },
		{ "000000c400080004", CHECK_DEGRADED, "without CAP_CHECKPOINT_RESTORE" },
		{ "000001c000080004", CHECK_DEGRADED, "without CAP_SYSLOG" },
		{ "0", CHECK_MISSING,
			"without CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, "
			"CAP_CHECKPOINT_RESTORE, CAP_SYSLOG" },
	};
	char status[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(status, sizeof(status), "CapPrm:\tffff\nCapEff:\t%s\n", cases[i].bits);
		machine.status = status;
		expect("capabilities", cases[i].state, cases[i].why,
			cases[i].state == CHECK_OK ? "" : "run as root, or grant them");
		if (strncmp(cases[i].why, "without", 7) == 0)
			assert_string_equal(features[2].why, cases[i].why);
	}
	machine.status = NULL;
	expect("capabilities", CHECK_MISSING, "CAP_BPF", "run as root");
}

static void lockdown_and_hidden_symbols(void **state)
{
	(void)state;
	expect("lockdown", CHECK_OK, "none is reported", "");
	machine.lockdown = "none [integrity] confidentiality\n";
	expect("lockdown", CHECK_OK, "integrity: sampling works, kernel functions may be refused",
		"");
	machine.lockdown = "none integrity [confidentiality]\n";
	expect("lockdown", CHECK_MISSING, "BPF may not read", "boot without");
	machine.lockdown = NULL;
	expect("lockdown", CHECK_OK, "none is reported", "");
	machine.lockdown = "";
	expect("lockdown", CHECK_OK, "none is reported", "");

	expect("kallsyms", CHECK_OK, "kernel.kptr_restrict=1, addresses are shown", "");
	/* A per-CPU variable at 0 is no hidden address. */
	machine.kallsyms = "0000000000000000 A fixed_percpu_data\n";
	expect("kallsyms", CHECK_OK, "addresses are shown", "");
	machine.kallsyms = "0000000000000000 T _text\n";
	machine.kptr_restrict = "2\n";
	expect("kallsyms", CHECK_DEGRADED, "kernel.kptr_restrict=2: kernel frames have no names",
		"sysctl");
	expect("kallsyms", CHECK_DEGRADED, "=2", "sysctl kernel.kptr_restrict=1");
	machine.status = "CapEff:\t0\n";
	expect("kallsyms", CHECK_DEGRADED, "=2",
		"kptr_restrict=1, and run as root or with CAP_SYSLOG");
	/* 0 is the least strict: 1 would hide them from more people. */
	machine.kptr_restrict = "0\n";
	expect("kallsyms", CHECK_DEGRADED, "=0", "run as root, or with CAP_SYSLOG");
	expect_not("kallsyms", "sysctl");
	machine.status = good.status;
	expect("kallsyms", CHECK_DEGRADED, "=0", "outside of this user namespace");
	machine.kptr_restrict = NULL;
	expect("kallsyms", CHECK_DEGRADED, "kernel.kptr_restrict=-1", "CAP_SYSLOG");
	machine.kallsyms = NULL;
	expect("kallsyms", CHECK_DEGRADED, "cannot be read", "CONFIG_KALLSYMS");
}

static void paranoid_levels(void **state)
{
	(void)state;
	expect("perf_event_paranoid", CHECK_OK, "2", "");
	machine.paranoid = "3\n";
	expect("perf_event_paranoid", CHECK_OK, "3", ""); /* not affected by CAP_SYS_ADMIN */
	machine.status = "CapEff:\t000001c400080004\n";
	expect("perf_event_paranoid", CHECK_DEGRADED, "3: this distribution", "sysctl");
	machine.paranoid = "2\n";
	expect("perf_event_paranoid", CHECK_OK, "2", "");
	machine.paranoid = "-1\n";
	expect("perf_event_paranoid", CHECK_OK, "-1", "");
	machine.paranoid = NULL;
	expect("perf_event_paranoid", CHECK_MISSING, "does not exist", "CONFIG_PERF_EVENTS");
}

static void containers(void **state)
{
	(void)state;
	expect("pid-namespace", CHECK_OK, "the host's", "");
	machine.pidns = 4026532836;
	expect("pid-namespace", CHECK_DEGRADED, "a container's", "hostPID");
	machine.pidns = 0;
	expect("pid-namespace", CHECK_DEGRADED, "No such file", "mount /proc");
}

static void processes_that_cannot_be_read(void **state)
{
	(void)state;
	expect("processes", CHECK_OK, "can be read", "");
	machine.maps = NULL;
	machine.label = "unconfined\n";
	expect("processes", CHECK_DEGRADED, "2 of 2 cannot be read: their", "apparmor=unconfined");
	machine.label = "cri-containerd.apparmor.d (enforce)\n";
	expect("processes", CHECK_DEGRADED,
		"cannot be read under the profile cri-containerd.apparmor.d (enforce): their",
		"appArmorProfile: {type: Unconfined}");
	machine.status = "CapEff:\t0\n";
	expect("processes", CHECK_DEGRADED, "cannot be read: their",
		"run as root, or with CAP_SYS_PTRACE");
	expect_not("processes", "pparmor");
}

static void events(void **state)
{
	(void)state;
	machine.cycles = -ENOENT;
	expect("cycles", CHECK_DEGRADED, "no hardware counter (No such file", "use cpu-clock");
	expect("cpu-clock", CHECK_OK, "opened", "");
	machine.cycles = -EACCES;
	expect("cycles", CHECK_DEGRADED, "perf_event_open: Permission denied", "run as root");
	machine.cycles = -EPERM;
	expect("cycles", CHECK_DEGRADED, "perf_event_open: Operation not", "run as root");
	machine.cycles = 0;
	machine.cpu_clock = -EACCES;
	expect("cpu-clock", CHECK_MISSING, "perf_event_open: Permission denied", "seccomp");
	expect("cycles", CHECK_OK, "opened", "");
	machine.build_ids = false;
	expect("mapping-build-ids", CHECK_DEGRADED, "read from the files", "whose perf events");
	machine.release = "5.11.2";
	expect("mapping-build-ids", CHECK_DEGRADED, "read from the files", "Linux 5.12");
	machine.output = -EMFILE;
	expect("mapping-build-ids", CHECK_MISSING, "perf_event_open: Too many open",
		"see cpu-clock");
}

static void samplers(void **state)
{
	(void)state;
	expect("sampler", CHECK_OK, "loaded, on 7 CPUs; user stacks by unwind tables", "");
	machine.tables = false;
	expect("sampler", CHECK_DEGRADED, "loaded, on 7 CPUs; user stacks by frame pointer",
		"debug");
	machine.start = -EBUSY;
	expect("off-cpu", CHECK_DEGRADED, "cannot attach to sched_switch (Device or",
		"fix what is not ok");
	expect("sampler", CHECK_DEGRADED, "loaded", "");
	machine.create = -EPERM;
	expect("sampler", CHECK_MISSING, "cannot load BPF: Operation not permitted",
		"fix what is not ok");
	expect("off-cpu", CHECK_DEGRADED, "cannot load BPF (Operation not permitted)", "");
	machine.vma = -ENOENT;
	expect("mapping-lookup", CHECK_DEGRADED, "by a table per process", "nothing: stacks");
	machine.release = "6.0.1";
	expect("mapping-lookup", CHECK_DEGRADED, "by a table per process", "Linux 6.1");
}

static void attach_methods(void **state)
{
	(void)state;
	machine.uprobe_multi = machine.fentry = -EPERM;
	expect("uprobe_multi", CHECK_DEGRADED, "refused (Operation not", "run as root");
	expect("fentry", CHECK_DEGRADED, "refused (Operation not", "lockdown");
	machine.uprobe_multi = machine.fentry = -EACCES;
	expect("uprobe_multi", CHECK_DEGRADED, "refused (Permission", "run as root");
	expect("fentry", CHECK_DEGRADED, "refused (Permission", "lockdown");
	machine.uprobe_multi = machine.fentry = -EINVAL;
	expect("uprobe_multi", CHECK_DEGRADED, "not supported (", "Linux 6.6");
	expect("fentry", CHECK_DEGRADED, "not supported by this kernel", "CONFIG_FUNCTION_TRACER");
}

static void ways_to_kernel_functions(void **state)
{
	(void)state;
	expect("kprobe_session", CHECK_OK, "entries and returns of many", "");
	expect("kprobe_multi", CHECK_OK, "to many kernel functions", "");
	expect("kprobes", CHECK_OK, "one by one", "");
	machine.kprobe_session = -EINVAL;
	expect("kprobe_session", CHECK_DEGRADED, "not supported by this kernel", "Linux 6.10");
	expect("kprobe_multi", CHECK_OK, "to many kernel functions", "");
	machine.kprobe_multi = -EPERM;
	expect("kprobe_multi", CHECK_DEGRADED, "refused (Operation not", "lockdown");
	machine.kprobe_multi = -EOPNOTSUPP;
	expect("kprobe_multi", CHECK_DEGRADED, "not supported by this kernel", "CONFIG_FPROBE");
	machine.kprobe_type = NULL;
	expect("kprobes", CHECK_DEGRADED, "not supported by this kernel", "CONFIG_KPROBE_EVENTS");
}

static void mount_points_of_tracefs(void **state)
{
	(void)state;
	expect("tracefs", CHECK_OK, "/sys/kernel/tracing", "");
	machine.tracefs = "/sys/kernel/debug/tracing";
	expect("tracefs", CHECK_OK, "/sys/kernel/debug/tracing", "");
	machine.functions = "";
	expect("tracefs", CHECK_DEGRADED,
		"/sys/kernel/debug/tracing/available_filter_functions: empty", "run as root");
	machine.sched_switch = NULL;
	expect("tracefs", CHECK_DEGRADED, "sched_switch/id: Permission denied", "run as root");
	machine.tracefs = NULL;
	expect("tracefs", CHECK_DEGRADED, "not mounted", "mount -t tracefs");
}

/* ---- what is printed ------------------------------------------------------------------------- */

static char output[1 << 16];

static int run(char *option, int to)
{
	char *argv[] = { (char *)"check", option, NULL };
	struct invocation call = { .argc = option ? 2 : 1, .argv = argv };
	int before = dup(STDOUT_FILENO), status;
	FILE *file = tmpfile();
	size_t size;

	assert_int_equal(config_parse(&call.config, IN_CHECK, call.argc, argv), 0);
	fflush(NULL);
	dup2(to < 0 ? fileno(file) : to, STDOUT_FILENO);
	status = command_check(&call);
	config_deinit(&call.config);
	fflush(NULL);
	dup2(before, STDOUT_FILENO);
	close(before);
	rewind(file);
	size = fread(output, 1, sizeof(output) - 1, file);
	output[size] = 0;
	fclose(file);
	return status;
}

static void a_line_for_each_feature(void **state)
{
	size_t lines = 0;

	(void)state;
	machine.pidns = 1;
	machine.release = "6.1\x1b[2J";
	assert_int_equal(run(NULL, -1), EXIT_DONE);
	for (const char *at = output; *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, CHECK_FEATURES);
	/* No escape sequence from the machine's texts reaches the terminal. */
	assert_memory_equal(output, "ok        kernel               Linux 6.1", 39);
	assert_null(strchr(output, 0x1b));
	assert_non_null(strstr(output, "\nok        cpu-clock            opened\n"));
	assert_non_null(strstr(output, "\ndegraded  pid-namespace        a container's: processes "
				       "outside of it are not sampled; to do: hostPID: true"));
	machine.create = -EPERM;
	assert_int_equal(run(NULL, -1), EXIT_FAILED);
	assert_non_null(strstr(output, "\nmissing   sampler              cannot load BPF: "));
	machine.create = 0;
	machine.tables = false; /* it can sample, but less well */
	assert_int_equal(run(NULL, -1), EXIT_DONE);
}

static void json_has_the_same_content(void **state)
{
	static const char begin[] = "[\n  {\"feature\": \"kernel\", \"state\": \"ok\", "
				    "\"why\": \"Linux 6.1.0-rc1 pdp11\", \"fix\": \"\"},\n";

	(void)state;
	machine.pidns = 1;
	assert_int_equal(run((char *)"--json", -1), EXIT_DONE);
	assert_memory_equal(output, begin, strlen(begin));
	assert_non_null(
		strstr(output, "\n  {\"feature\": \"pid-namespace\", \"state\": \"degraded\", "));
	assert_string_equal(output + strlen(output) - 4, "}\n]\n");
	assert_null(strstr(output, "to do"));
}

static void output_that_cannot_be_written_fails(void **state)
{
	int full = open("/dev/full", O_WRONLY);

	(void)state;
	assert_int_equal(run(NULL, full), EXIT_FAILED);
	close(full);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(nothing_is_missing_on_a_good_machine),
		CASE(kernels),
		CASE(root_is_not_told_to_be_root),
		CASE(kernels_that_are_new_enough_are_not_too_old),
		CASE(capabilities),
		CASE(lockdown_and_hidden_symbols),
		CASE(paranoid_levels),
		CASE(containers),
		CASE(processes_that_cannot_be_read),
		CASE(events),
		CASE(samplers),
		CASE(attach_methods),
		CASE(ways_to_kernel_functions),
		CASE(mount_points_of_tracefs),
		CASE(a_line_for_each_feature),
		CASE(json_has_the_same_content),
		CASE(output_that_cannot_be_written_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
