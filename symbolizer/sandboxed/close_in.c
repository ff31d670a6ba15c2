/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the sandbox. Order matters: what needs a system call is given up before the filter
 * forbids it, and capabilities leave the bounding set while CAP_SETPCAP is still there. The death
 * signal survives that: the kernel clears it only if the new credentials are not a subset of the
 * old (commit_creds()).
 *
 * The filter is an allow-list of what allocation and I/O on open descriptors need. Three exceptions
 * are for libraries: libelf checks with fcntl(F_GETFD) whether a descriptor is open, libdw reads
 * the file's path with readlink() (it gets ENOENT), and the C library's qsort() asks once how much
 * memory the machine has, old versions by opening /proc/meminfo; hence the warm-up. libdeflate on
 * arm64 opens /proc/self/auxv for the processor's features.
 */
#include "symbolizer/sandboxed/close_in.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/sandbox/sandbox_wire.h"

enum {
	NICE = 10,
	IOPRIO_WHO_PROCESS_ = 1, /* linux/ioprio.h, absent from old headers */
	IOPRIO_IDLE_ = 3 << 13,
	MAX_CAPABILITY = 256, /* upper bound; the kernel returns EINVAL long before */
	WARM_UP_NUMBERS = 1024,
};

int sandbox_drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	/* Needs CAP_SETPCAP; without that, no_new_privs alone makes the bounding set irrelevant. */
	for (int i = 0; i < MAX_CAPABILITY && !prctl(PR_CAPBSET_DROP, i, 0, 0, 0); i++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &header, none) ? -errno : 0;
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

static int close_in_set_limits(const struct sandbox_limits *limits)
{
	int err = sandbox_limit(RLIMIT_CORE, 0, 0);

	if (!err)
		err = sandbox_limit(RLIMIT_NPROC, 0, 0);
	if (!err)
		err = sandbox_limit(RLIMIT_NOFILE, SANDBOX_FD_COUNT, SANDBOX_FD_COUNT);
	/* SIGXCPU first, which tells the parent why; SIGKILL if that is ignored. */
	if (!err && limits->cpu_seconds)
		err = sandbox_limit(RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + 1);
	if (!err && limits->output_bytes)
		err = sandbox_limit(RLIMIT_FSIZE, limits->output_bytes, limits->output_bytes);
	if (!err && limits->memory_bytes && sandbox_is_closed())
		err = sandbox_limit(RLIMIT_AS, limits->memory_bytes, limits->memory_bytes);
	return err;
}

/* Best effort: a build at the agent's priority is still correct. */
void sandbox_lower_priority(void)
{
	struct sched_param none = { 0 };

	/* Relative to its parent's priority. */
	(void)!nice(NICE);
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
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(mapping_calls) && !err; i++)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, mapping_calls[i], 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!err)
		err = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GETFD));
	/* fstat() of glibc 2.33 to 2.38. */
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
			SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
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
	int err = sandbox_drop_capabilities();

	if (!err)
		err = close_in_set_limits(limits);
	if (err || !sandbox_is_closed())
		return err;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	warm_up();
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
