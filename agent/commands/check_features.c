/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/commands/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/sampler/build_share.h"
#include "agent/sampler/collect/attach_probe.h"
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/cpus.h"
#include "agent/sampler/collect/libbpf_log.h"
#include "agent/sampler/collect/mapping_probe.h"
#include "agent/sampler/collect/perf_event.h"
#include "agent/sampler/probes/kernel_latency/kernel_ways.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "base/descriptors.h"
#include "base/io.h"
#include "base/pid_namespace.h"

const char CHECK_SAMPLER[] = "sampler";

enum {
	OLDEST_MAJOR = 5,
	OLDEST_MINOR = 10,
	WATERMARK_BYTES = 4096,
	PROCESSES_TRIED = 1000,
};

/* Sets the result of a check. FIX takes no format arguments. */
static void __attribute__((format(printf, 4, 5)))
set(struct check_feature *f, enum check_state state, const char *fix, const char *why, ...)
{
	va_list arguments;

	va_start(arguments, why);
	vsnprintf(f->why, sizeof(f->why), why, arguments);
	va_end(arguments);
	snprintf(f->fix, sizeof(f->fix), "%s", fix);
	f->state = state;
}

static long check_read_number(const char *path, long otherwise)
{
	char line[32];

	if (io_read_line(AT_FDCWD, path, line, sizeof(line)) <= 0)
		return otherwise;
	return strtol(line, NULL, 10);
}

static void kernel_version(int *ret_major, int *ret_minor)
{
	struct utsname name;

	*ret_major = *ret_minor = 0;
	uname(&name);
	sscanf(name.release, "%d.%d", ret_major, ret_minor);
}

static bool kernel_is_before(int major_number, int minor_number)
{
	int have_major, have_minor;

	kernel_version(&have_major, &have_minor);
	return have_major < major_number ||
	       (have_major == major_number && have_minor < minor_number);
}

/* What helps where a permission is missing: nobody tells root to be root. */
static const char *permission_fix(const char *for_others, const char *for_root)
{
	return geteuid() ? for_others : for_root;
}

static const char ROOT_IN_CONTAINER[] =
	"being root is not enough here: a container needs --privileged, or CAP_SYS_ADMIN (or "
	"CAP_BPF and CAP_PERFMON) and a seccomp profile that allows bpf and perf_event_open";

/* An old version is only a warning: the checks below try what the kernel supports. */
static void check_kernel(struct check_feature *f)
{
	struct utsname name;

	uname(&name);
	if (!kernel_is_before(OLDEST_MAJOR, OLDEST_MINOR))
		set(f, CHECK_OK, "", "Linux %s %s", name.release, name.machine);
	else
		set(f, CHECK_DEGRADED, "use Linux 5.10 or newer",
			"Linux %s is older than 5.10, where fathom is not tested", name.release);
}

static void check_btf(struct check_feature *f)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		set(f, CHECK_OK, "", "/sys/kernel/btf/vmlinux");
	else
		set(f, CHECK_MISSING,
			"boot a kernel with CONFIG_DEBUG_INFO_BTF=y (distributions' kernels from "
			"5.10 have it), or mount /sys",
			"/sys/kernel/btf/vmlinux: %s", strerror(errno));
}

static uint64_t effective_capabilities(void)
{
	autofclose FILE *status = fopen("/proc/self/status", "re");
	char line[256];

	while (status && fgets(line, sizeof(line), status)) {
		if (!strncmp(line, "CapEff:", 7))
			return strtoull(line + 7, NULL, 16);
	}
	return 0;
}

static void append_name(char *names, size_t size, const char *name)
{
	size_t used = strlen(names);

	snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
}

/* `by_admin`: CAP_SYS_ADMIN implies it, as before it was split off. */
static void check_capabilities(struct check_feature *f)
{
	static const struct {
		int bit;
		const char *name;
		bool needed, by_admin;
	} wanted[] = {
		{ CAP_BPF, "CAP_BPF", true, true },
		{ CAP_PERFMON, "CAP_PERFMON", true, true },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false, false },
		{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", false, false },
		{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE", false, true },
		{ CAP_SYSLOG, "CAP_SYSLOG", false, true },
	};
	uint64_t have = effective_capabilities();
	bool admin = have & UINT64_C(1) << CAP_SYS_ADMIN;
	char missing[128] = "";
	bool needed = false;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (have & UINT64_C(1) << wanted[i].bit || (admin && wanted[i].by_admin))
			continue;
		append_name(missing, sizeof(missing), wanted[i].name);
		needed |= wanted[i].needed;
	}
	if (!missing[0])
		set(f, CHECK_OK, "", "all that fathom uses");
	else
		set(f, needed ? CHECK_MISSING : CHECK_DEGRADED,
			permission_fix("run as root, or grant them (before Linux 5.8: "
				       "CAP_SYS_ADMIN); without CAP_SYS_PTRACE, "
				       "CAP_DAC_READ_SEARCH and CAP_CHECKPOINT_RESTORE, other "
				       "users' programs have no names",
				"grant them to this container or service (--cap-add, "
				"capabilities.add, AmbientCapabilities=): root does not have "
				"them here"),
			"without %s", missing);
}

static void check_lockdown(struct check_feature *f)
{
	char mode[32];

	if (!kernel_ways_lockdown(mode, sizeof(mode)))
		set(f, CHECK_OK, "", "none is reported");
	else if (!strcmp(mode, "confidentiality"))
		set(f, CHECK_MISSING, "boot without lockdown=confidentiality",
			"confidentiality: BPF may not read memory");
	else
		set(f, CHECK_OK, "", "%s: sampling works, kernel functions may be refused", mode);
}

/* Decides by whether /proc/kallsyms shows addresses; kptr_restrict only explains why not. */
static void check_kallsyms(struct check_feature *f)
{
	long restriction = check_read_number("/proc/sys/kernel/kptr_restrict", -1);
	bool may = effective_capabilities() & UINT64_C(1) << CAP_SYSLOG;
	const char *fix = "run as root, or with CAP_SYSLOG";
	char line[64];

	/* With 2 nobody sees them, with less whoever has CAP_SYSLOG outside of user namespaces. */
	if (restriction >= 2)
		fix = may ? "sysctl kernel.kptr_restrict=1"
			  : "sysctl kernel.kptr_restrict=1, and run as root or with CAP_SYSLOG";
	else if (may)
		fix = "run outside of this user namespace: its CAP_SYSLOG does not count";
	if (io_read_line(AT_FDCWD, "/proc/kallsyms", line, sizeof(line)) <= 0)
		set(f, CHECK_DEGRADED, "use a kernel with CONFIG_KALLSYMS=y",
			"/proc/kallsyms cannot be read: kernel frames have no names");
	else if (strtoull(line, NULL, 16) == 0 && strncmp(line, "0000000000000000 A", 18))
		set(f, CHECK_DEGRADED, fix, "kernel.kptr_restrict=%ld: kernel frames have no names",
			restriction);
	else
		set(f, CHECK_OK, "", "kernel.kptr_restrict=%ld, addresses are shown", restriction);
}

static void check_paranoid(struct check_feature *f)
{
	long level = check_read_number("/proc/sys/kernel/perf_event_paranoid", -2);
	bool admin = effective_capabilities() & UINT64_C(1) << CAP_SYS_ADMIN;

	if (level == -2)
		set(f, CHECK_MISSING, "use a kernel with CONFIG_PERF_EVENTS=y",
			"/proc/sys/kernel/perf_event_paranoid does not exist");
	else if (level > 2 && !admin)
		set(f, CHECK_DEGRADED, "sysctl kernel.perf_event_paranoid=2, or CAP_SYS_ADMIN",
			"%ld: this distribution's kernel may deny access even with CAP_PERFMON",
			level);
	else
		set(f, CHECK_OK, "", "%ld", level);
}

static void check_pid_namespace(struct check_feature *f)
{
	bool initial;
	int err = pid_namespace_is_initial(&initial);

	if (err)
		set(f, CHECK_DEGRADED, "mount /proc", "/proc/self/ns/pid: %s", strerror(-err));
	else if (initial)
		set(f, CHECK_OK, "", "the host's");
	else
		set(f, CHECK_DEGRADED, PID_NAMESPACE_FIX,
			"a container's: processes outside of it are not sampled");
}

/* The profile of AppArmor, or the context of SELinux, that confines us; "" = none. */
static void security_label(char *label, size_t size)
{
	if (io_read_line(AT_FDCWD, "/proc/self/attr/current", label, size) <= 0 ||
		!strcmp(label, "unconfined"))
		label[0] = 0;
}

static bool is_refused(int err)
{
	return err == -EPERM || err == -EACCES;
}

/* Counts processes whose mappings can be read, and those of which that is forbidden. Process 1 is
 * left out: some machines protect it. */
static void count_processes(int *ret_readable, int *ret_refused)
{
	autoclosedir DIR *directory = opendir("/proc");
	struct dirent *entry;

	*ret_readable = *ret_refused = 0;
	while (directory && !io_next_entry(directory, &entry) && entry &&
		*ret_readable + *ret_refused < PROCESSES_TRIED) {
		long pid = strtol(entry->d_name, NULL, 10);
		char path[32], line[64];
		ssize_t length;

		if (pid <= 1 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
		length = io_read_line(AT_FDCWD, path, line, sizeof(line));
		*ret_readable += length > 0;
		*ret_refused += is_refused((int)length);
	}
}

/* What AppArmor forbids counts as ptrace: with the capability, reading still fails. */
static void check_processes(struct check_feature *f)
{
	bool may = effective_capabilities() & UINT64_C(1) << CAP_SYS_PTRACE;
	int readable, refused;
	char label[80];

	count_processes(&readable, &refused);
	if (!refused) {
		set(f, CHECK_OK, "", "mappings of all can be read");
		return;
	}
	security_label(label, sizeof(label));
	set(f, CHECK_DEGRADED,
		!may ? "run as root, or with CAP_SYS_PTRACE"
		     : "appArmorProfile: {type: Unconfined} (Kubernetes) or --security-opt "
		       "apparmor=unconfined (Docker, podman)",
		"%d of %d cannot be read%s%s: their programs have no names", refused,
		readable + refused, may && label[0] ? " under the profile " : "", may ? label : "");
}

static int first_cpu(void)
{
	autocall(cpu_list_deinit) struct cpu_list list = { 0 };

	return cpu_list_online(&list) == 0 && list.count ? list.numbers[0] : 0;
}

static int try_event(enum collect_event event)
{
	const struct collect_options options = {
		.event = event, .frequency_hz = 99, .user = true, .kernel = true
	};
	autoclose int fd = perf_event_open_sampling(first_cpu(), &options);

	return fd < 0 ? fd : 0;
}

static void check_cpu_clock(struct check_feature *f)
{
	int err = try_event(COLLECT_CPU_CLOCK);

	if (!err)
		set(f, CHECK_OK, "", "opened");
	else
		set(f, CHECK_MISSING,
			permission_fix("run as root or with CAP_PERFMON; in a container, allow "
				       "perf_event_open in the seccomp profile",
				ROOT_IN_CONTAINER),
			"perf_event_open: %s", strerror(-err));
}

static void check_cycles(struct check_feature *f)
{
	int err = try_event(COLLECT_CYCLES);

	if (!err)
		set(f, CHECK_OK, "", "opened");
	else if (err == -EACCES || err == -EPERM)
		set(f, CHECK_DEGRADED,
			permission_fix("run as root or with CAP_PERFMON", ROOT_IN_CONTAINER),
			"perf_event_open: %s", strerror(-err));
	else
		set(f, CHECK_DEGRADED,
			"use cpu-clock, the default; for a virtual machine, enable its PMU",
			"no hardware counter (%s): -e cycles is not available", strerror(-err));
}

static void check_build_ids(struct check_feature *f)
{
	bool build_ids = true;
	autoclose int fd = perf_event_open_output(first_cpu(), WATERMARK_BYTES, &build_ids);

	if (fd < 0)
		set(f, CHECK_MISSING, "see cpu-clock", "perf_event_open: %s", strerror(-fd));
	else if (build_ids)
		set(f, CHECK_OK, "", "the kernel reports them with each mapping");
	else
		set(f, CHECK_DEGRADED,
			kernel_is_before(5, 12) ? "use Linux 5.12 or newer"
						: "use a kernel whose perf events can report them",
			"read from the files: programs that exit quickly may have no names");
}

static void check_mapping_lookup(struct check_feature *f)
{
	if (!mapping_probe(NULL))
		set(f, CHECK_OK, "", "by VMA lookup in the kernel");
	else
		set(f, CHECK_DEGRADED,
			kernel_is_before(6, 1) ? "use Linux 6.1 or newer"
					       : "nothing: stacks and names are the same, at "
						 "a little more CPU time",
			"by a table per process, since this kernel's VMA tree cannot be read: code "
			"mapped a moment ago is unwound in user space");
}

/* Loads and attaches the BPF programs without starting to sample. */
static void check_sampler(struct check_feature *f)
{
	struct collect_options options = {
		.event = COLLECT_CPU_CLOCK, .frequency_hz = 99, .user = true, .kernel = true
	};
	struct metrics metrics = { 0 };
	struct collect *collect = NULL;
	const char *step = "start";
	int err;

	options.probes = probes_all;
	options.metrics = &metrics;
	err = collect_create(&options, &collect, &step);
	if (!err && collect_tables(collect))
		set(f, CHECK_OK, "", "loaded, on %zu CPUs; user stacks by unwind tables",
			collect_cpu_count(collect));
	else if (!err)
		set(f, CHECK_DEGRADED,
			"fathom record --log-level debug shows what the kernel refused",
			"loaded, on %zu CPUs; user stacks by frame pointer only: stacks of code "
			"without frame pointers are truncated",
			collect_cpu_count(collect));
	else
		set(f, CHECK_MISSING, "fix what is not ok above", "cannot %s: %s", step,
			strerror(-err));
	collect_destroy(collect);
}

/* Attaches the sched_switch program, with a filter that matches no process. */
static void check_off_cpu(struct check_feature *f)
{
	struct collect_options options = {
		.event = COLLECT_CPU_CLOCK,
		.frequency_hz = 1,
		.user = true,
		.kernel = true,
		.off_cpu_share = 1,
		.filter.filter_tgids = 1,
	};
	struct metrics metrics = { 0 };
	struct collect *collect = NULL;
	const char *step = "";
	int err;

	options.probes = probes_all;
	options.metrics = &metrics;
	err = collect_create(&options, &collect, &step);
	if (!err) {
		step = "attach to sched_switch";
		err = collect_start(collect);
	}
	if (!err)
		set(f, CHECK_OK, "", "waiting threads can be sampled");
	else
		set(f, CHECK_DEGRADED,
			"fix what is not ok above; fathom record --off-cpu --log-level debug shows "
			"more",
			"cannot %s (%s): --off-cpu and --off-cpu-threshold are not available", step,
			strerror(-err));
	collect_destroy(collect);
}

/* ---- ways to attach to functions, which sampling does not need --------------------------------
 */

static void check_uprobe_multi(struct check_feature *f)
{
	int err = attach_probe_uprobe_multi();

	if (!err)
		set(f, CHECK_OK, "", "one link can attach to many user functions");
	else if (is_refused(err))
		set(f, CHECK_DEGRADED,
			permission_fix("run as root or with CAP_BPF and CAP_PERFMON; in a "
				       "container, allow bpf in the seccomp profile",
				ROOT_IN_CONTAINER),
			"refused (%s); sampling does not need it", strerror(-err));
	else
		set(f, CHECK_DEGRADED,
			kernel_is_before(6, 6) ? "use Linux 6.6 or newer"
					       : "use a kernel with CONFIG_UPROBES=y",
			"not supported (%s): user functions are attached to one by one; sampling "
			"does not need it",
			strerror(-err));
}

/* A way to attach to kernel functions; ERR of trying it. */
static void check_kernel_way(
	struct check_feature *f, int err, const char *works, const char *needed)
{
	if (!err)
		set(f, CHECK_OK, "", "%s", works);
	else if (is_refused(err))
		set(f, CHECK_DEGRADED,
			permission_fix("run as root or with CAP_BPF and CAP_PERFMON; lockdown may "
				       "refuse it as well",
				"boot without lockdown, if the line above reports one; a container "
				"needs CAP_SYS_ADMIN, or CAP_BPF and CAP_PERFMON"),
			"refused (%s); sampling does not need it", strerror(-err));
	else
		set(f, CHECK_DEGRADED, needed,
			"not supported by this kernel (%s); sampling does not need it",
			strerror(-err));
}

static void check_fentry(struct check_feature *f)
{
	check_kernel_way(f, attach_probe_fentry(), "kernel functions can be attached to",
		"use a kernel with CONFIG_DEBUG_INFO_BTF=y and CONFIG_FUNCTION_TRACER=y "
		"(arm64: Linux 6.4 or newer)");
}

static void check_kprobe_session(struct check_feature *f)
{
	check_kernel_way(f, attach_probe_kprobe_multi(true),
		"one link can attach to entries and returns of many kernel functions",
		kernel_is_before(6, 10) ? "use Linux 6.10 or newer with CONFIG_FPROBE=y"
					: "use a kernel with CONFIG_FPROBE=y");
}

static void check_kprobe_multi(struct check_feature *f)
{
	check_kernel_way(f, attach_probe_kprobe_multi(false),
		"one link can attach to many kernel functions",
		kernel_is_before(5, 18) ? "use Linux 5.18 or newer with CONFIG_FPROBE=y"
					: "use a kernel with CONFIG_FPROBE=y");
}

/* Whether an event would be opened depends on its function, too. */
static void check_kprobes(struct check_feature *f)
{
	int type = kernel_way_event_type();

	check_kernel_way(f, MIN(type, 0), "kernel functions can be attached to one by one",
		"use a kernel with CONFIG_KPROBE_EVENTS=y");
}

static const char *tracefs_directory(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	struct statfs info;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!statfs(places[i], &info) && info.f_type == TRACEFS_MAGIC)
			return places[i];
	}
	return NULL;
}

/* Checks which files exist, and whether attaching is allowed: lockdown forbids it. */
static void check_tracefs(struct check_feature *f)
{
	static const char *const files[] = { "events/sched/sched_switch/id",
		"available_filter_functions" };
	const char *directory = tracefs_directory();
	char path[80], line[64];

	if (!directory) {
		set(f, CHECK_DEGRADED, "mount -t tracefs none /sys/kernel/tracing",
			"not mounted; sampling does not need it");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		ssize_t length;

		snprintf(path, sizeof(path), "%s/%s", directory, files[i]);
		length = io_read_line(AT_FDCWD, path, line, sizeof(line));
		if (length > 0)
			continue;
		set(f, CHECK_DEGRADED,
			permission_fix("run as root; lockdown may refuse it as well",
				length < 0 ? "boot without lockdown, if the line above reports one"
					   : "use a kernel with CONFIG_FUNCTION_TRACER=y"),
			"%s: %s; sampling does not need it", path,
			length < 0 ? strerror((int)-length) : "empty");
		return;
	}
	set(f, CHECK_OK, "", "%s", directory);
}

static void check_descriptors(struct check_feature *f)
{
	struct build_share share;
	unsigned int limit;

	descriptors_raise_limit();
	limit = descriptors_limit();
	/* What the agent opens itself grows with the CPUs. */
	share = build_share_of(build_share_left_of(limit, (unsigned int)get_nprocs_conf()));
	if (share.is_small)
		set(f, CHECK_DEGRADED, "raise the limit of open files (ulimit -n, LimitNOFILE=)",
			"%u open files at most: index builds wait for each other, names come late",
			limit);
	else
		set(f, CHECK_OK, "", "%u open files at most", limit);
}

int check_features(struct check_feature features[CHECK_FEATURES])
{
	static const struct {
		const char *name;
		void (*check)(struct check_feature *f);
	} checks[] = {
		{ "kernel", check_kernel },
		{ "btf", check_btf },
		{ "capabilities", check_capabilities },
		{ "lockdown", check_lockdown },
		{ "kallsyms", check_kallsyms },
		{ "perf_event_paranoid", check_paranoid },
		{ "pid-namespace", check_pid_namespace },
		{ "processes", check_processes },
		{ "open-files", check_descriptors },
		{ "cpu-clock", check_cpu_clock },
		{ "cycles", check_cycles },
		{ "mapping-build-ids", check_build_ids },
		{ "mapping-lookup", check_mapping_lookup },
		{ CHECK_SAMPLER, check_sampler },
		{ "off-cpu", check_off_cpu },
		{ "uprobe_multi", check_uprobe_multi },
		{ "fentry", check_fentry },
		{ "kprobe_session", check_kprobe_session },
		{ "kprobe_multi", check_kprobe_multi },
		{ "kprobes", check_kprobes },
		{ "tracefs", check_tracefs },
	};

	_Static_assert(ARRAY_SIZE(checks) <= CHECK_FEATURES, "room for all");
	libbpf_log_init();
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		features[i] = (struct check_feature){ .name = checks[i].name };
		checks[i].check(&features[i]);
	}
	return ARRAY_SIZE(checks);
}
