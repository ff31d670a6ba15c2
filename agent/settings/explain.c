/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/explain.h"
#include "base/io.h"

static long explain_read_number(const char *path, long otherwise)
{
	char line[32];

	return io_read_line(AT_FDCWD, path, line, sizeof(line)) > 0 ? strtol(line, NULL, 10)
								    : otherwise;
}

static const char *fix_permission(void)
{
	if (geteuid() != 0 && explain_read_number("/proc/sys/kernel/perf_event_paranoid", 2) > 2)
		return "run it with sudo (with kernel.perf_event_paranoid above 2, CAP_PERFMON is "
		       "not enough)";
	if (geteuid() != 0)
		return "run it with sudo, or give it CAP_PERFMON, CAP_BPF, CAP_SYS_PTRACE and "
		       "CAP_DAC_READ_SEARCH";
	if (explain_read_number("/proc/sys/kernel/perf_event_paranoid", 2) > 2)
		return "with kernel.perf_event_paranoid above 2, CAP_PERFMON is not enough: grant "
		       "CAP_SYS_ADMIN, or sysctl kernel.perf_event_paranoid=2; see fathom check";
	return "being root is not enough here: a container needs CAP_SYS_ADMIN (or CAP_PERFMON and "
	       "CAP_BPF) and a seccomp profile that allows perf_event_open and bpf; see fathom "
	       "check";
}

static const char *fix(const struct sampler_failure *failure, int error)
{
	if (strstr(failure->step, "cache"))
		return "it must belong to you and be writable by nobody else; choose another with "
		       "--cache-directory";
	if (error == -EPERM || error == -EACCES)
		return fix_permission();
	if (error == -ENOENT && strstr(failure->step, "sampling event"))
		return "this CPU (or virtual machine) has no such counter: use -e cpu-clock";
	if (error == -EOPNOTSUPP && access("/sys/kernel/btf/vmlinux", R_OK))
		return "the kernel has no type information (/sys/kernel/btf/vmlinux): it needs "
		       "CONFIG_DEBUG_INFO_BTF=y, as every distribution's kernel from 5.10 has";
	if (error == -ENODEV)
		return "no such CPU is online";
	return "fathom check shows what this machine supports";
}

void explain_failure(const struct sampler_failure *failure, int error)
{
	fprintf(stderr, "fathom: cannot %s%s%s: %s\n  %s\n", failure->step,
		*failure->detail ? " " : "", failure->detail, strerror(-error),
		fix(failure, error));
}
