/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the sandbox. Order matters: what needs a system call is given up before the filter
 * forbids it, and capabilities leave the bounding set while CAP_SETPCAP is still there. The death
 * signal survives that, but not the change of the user (commit_creds()), after which it is set
 * again.
 *
 * The user root is left, and the file system, only as far as the agent has the capabilities for it
 * (CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN). CAP_KILL is necessary, too: without it the agent
 * could not end a child of another user.
 *
 * The filter is an allow-list of what allocation and I/O on open descriptors need. Three exceptions
 * are for libraries: libelf checks with fcntl(F_GETFD) whether a descriptor is open, libdw reads
 * the file's path with readlink() (it gets ENOENT), and the C library's qsort() asks once how much
 * memory the machine has, old versions by opening /proc/meminfo; hence the warm-up. libdeflate on
 * arm64 opens /proc/self/auxv for the processor's features. fstat() is no exception: glibc 2.33 to
 * 2.38 makes it newfstatat(), which would tell which paths exist; see io_fstat().
 */
#include "symbolizer/sandboxed/close_in.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libdeflate.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/sandbox/sandbox_wire.h"

enum {
	IOPRIO_WHO_PROCESS_ = 1, /* linux/ioprio.h, absent from old headers */
	IOPRIO_IDLE_ = 3 << 13,
	MAX_CAPABILITY = 256, /* upper bound; the kernel returns EINVAL long before */
	WARM_UP_NUMBERS = 1024,
	NOBODY = 65534, /* the kernel's overflow user and group */
};

static int drop_bounding_set(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* Needs CAP_SETPCAP; without that, no_new_privs alone makes the bounding set irrelevant. */
	for (int i = 0; i < MAX_CAPABILITY && !prctl(PR_CAPBSET_DROP, i, 0, 0, 0); i++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return 0;
}

static int clear_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int sandbox_drop_capabilities(void)
{
	int err = drop_bounding_set();

	return err ? err : clear_capabilities();
}

static bool is_capable(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &header, sets) &&
	       sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* Where the agent may not change the user, the child stays root without capabilities. */
static int become_nobody(void)
{
	pid_t parent = getppid();
	int signal_number = 0;

	if (geteuid() || !is_capable(CAP_SETUID) || !is_capable(CAP_SETGID) ||
		!is_capable(CAP_KILL) || prctl(PR_GET_PDEATHSIG, &signal_number, 0, 0, 0))
		return 0;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		setresuid(NOBODY, NOBODY, NOBODY))
		return -errno;
	return signal_number ? sandbox_tie_to_parent(parent) : 0;
}

/*
 * An empty, read-only file system in a mount namespace of its own; best effort, because the filter
 * forbids all calls with a path anyway.
 */
static void leave_files(void)
{
	static const char place[] = "/proc";
	const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (!is_capable(CAP_SYS_ADMIN) || unshare(CLONE_NEWNS) ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("none", place, "tmpfs", flags, "size=4k,mode=0555") || chdir(place))
		return;
	/* The root of an initial RAM disk cannot be exchanged, only left. */
	if (syscall(SYS_pivot_root, ".", "."))
		(void)!chroot(".");
	else
		(void)umount2(".", MNT_DETACH);
	(void)!chdir("/");
}

void sandbox_set_name(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

int sandbox_limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit old, value = { .rlim_cur = soft, .rlim_max = hard };

	/* We may already run under a lower limit, which cannot be raised. */
	if (getrlimit(resource, &old))
		return -errno;
	value.rlim_max = MIN(value.rlim_max, old.rlim_max);
	value.rlim_cur = MIN(value.rlim_cur, value.rlim_max);
	return setrlimit(resource, &value) ? -errno : 0;
}

/* The limits that depend on the files: SOFT now, at most HARD later. */
static int set_size_limits(const struct sandbox_limits *soft, const struct sandbox_limits *hard)
{
	int err = 0;

	/* SIGXCPU first, which tells the parent why; SIGKILL if that is ignored. */
	if (hard->cpu_seconds)
		err = sandbox_limit(RLIMIT_CPU, soft->cpu_seconds, hard->cpu_seconds + 1);
	if (!err && hard->memory_bytes && sandbox_is_closed())
		err = sandbox_limit(RLIMIT_AS, soft->memory_bytes, hard->memory_bytes);
	return err;
}

static int close_in_set_limits(const struct sandbox_limits *limits)
{
	const struct sandbox_limits least = sandbox_limits_for(limits, 0);
	int err = sandbox_limit(RLIMIT_CORE, 0, 0);

	if (!err)
		err = sandbox_limit(RLIMIT_NPROC, 0, 0);
	if (!err)
		err = sandbox_limit(RLIMIT_NOFILE, SANDBOX_FD_COUNT, SANDBOX_FD_COUNT);
	if (!err && limits->output_bytes)
		err = sandbox_limit(RLIMIT_FSIZE, limits->output_bytes, limits->output_bytes);
	return err ? err : set_size_limits(&least, limits);
}

int sandbox_settle(const struct sandbox_limits *limits, uint64_t file_bytes)
{
	const struct sandbox_limits final = sandbox_limits_for(limits, file_bytes);

	return set_size_limits(&final, &final);
}

/* Best effort: a build at the agent's priority is still correct. */
void sandbox_lower_priority(void)
{
	struct sched_param none = { 0 };

	/* Not nice(): the parent may have changed this child's priority already. */
	(void)setpriority(PRIO_PROCESS, 0,
		MIN(getpriority(PRIO_PROCESS, (id_t)getppid()) + SANDBOX_NICE, 19));
	sched_setscheduler(0, SCHED_BATCH, &none);
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS_, 0, IOPRIO_IDLE_);
}

static int compare_numbers(const void *a, const void *b)
{
	const int *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void warm_up(void)
{
	int numbers[WARM_UP_NUMBERS];

	for (int i = 0; i < WARM_UP_NUMBERS; i++)
		numbers[i] = WARM_UP_NUMBERS - i;
	qsort(numbers, WARM_UP_NUMBERS, sizeof(numbers[0]), compare_numbers);
	libdeflate_crc32(0, numbers, sizeof(numbers[0]));
}

/* Calls allowed with any arguments. */
static const int allowed_calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(recvmsg), /* what the parent sends: gather.c, note_child.c */
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(fstat),
	SCMP_SYS(ftruncate),
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(close),
	SCMP_SYS(sysinfo),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* Calls that libraries try and can do without. Some do not exist on every architecture. */
static const int refused_calls[] = {
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
};

static int close_in_add_rule(scmp_filter_ctx filter, int call, uint32_t action)
{
	int err = seccomp_rule_add(filter, action, call, 0);

	return err == -EDOM ? 0 : err; /* a call of another architecture */
}

static int add_checked_rules(scmp_filter_ctx filter)
{
	static const int mapping_calls[] = { SCMP_SYS(mmap), SCMP_SYS(mprotect) };
	static const unsigned int settled[] = { RLIMIT_AS, RLIMIT_CPU };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(mapping_calls) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, mapping_calls[i], 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GETFD));
	/* sandbox_settle() */
	for (size_t i = 0; i < ARRAY_SIZE(settled) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
			SCMP_A0(SCMP_CMP_EQ, 0), SCMP_A1(SCMP_CMP_EQ, settled[i]));
	return err;
}

static int load_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err = 0;

	if (!filter)
		return -ENOMEM;
	err = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_SIZE(allowed_calls) && !err; i++)
		err = close_in_add_rule(filter, allowed_calls[i], SCMP_ACT_ALLOW);
	for (size_t i = 0; i < ARRAY_SIZE(refused_calls) && !err; i++)
		err = close_in_add_rule(filter, refused_calls[i], SCMP_ACT_ERRNO(ENOENT));
	if (!err)
		err = add_checked_rules(filter);
	if (!err)
		err = seccomp_load(filter);
	seccomp_release(filter);
	return err;
}

int sandbox_close_in(const struct sandbox_limits *limits)
{
	int err;

	warm_up();
	if (sandbox_is_closed())
		leave_files();
	err = drop_bounding_set();
	if (!err && sandbox_is_closed())
		err = become_nobody();
	if (!err)
		err = clear_capabilities();
	if (!err)
		err = close_in_set_limits(limits);
	if (err || !sandbox_is_closed())
		return err;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	return load_filter();
}

int sandbox_enter(const struct sandbox_limits *limits)
{
	sandbox_lower_priority();
	return sandbox_close_in(limits);
}

bool sandbox_parse_number(const char *text, unsigned long *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoul(text, &end, 10);
	return !errno && end != text && !*end;
}

/* The parent may have died before the death signal was set. */
int sandbox_tie_to_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

void sandbox_offer_to_oom_killer(void)
{
	autoclose int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "1000", 4);
}

void sandbox_report(const struct sandbox_result *result)
{
	struct sandbox_message message = {
		.magic = SANDBOX_MAGIC,
		.error = result->error,
		.broken_units = result->broken_units,
	};

	message.check = sandbox_check(&message);
	/* No exit handlers: the filter forbids the system calls they need. */
	_exit(io_write_all(SANDBOX_RESULT_FD, &message, sizeof(message)) ? EXIT_FAILURE
									 : EXIT_SUCCESS);
}
