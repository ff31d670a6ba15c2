/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To be preloaded: stops the process (SIGSTOP) when it has written a stored profile and is about to
 * rename it, so that a test can kill it at that point.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	if (strstr(from, ".pb.gz.tmp"))
		raise(SIGSTOP);
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
}
