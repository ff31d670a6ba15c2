/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shadow_stack OUT SECONDS AFTER_MS COMMAND...: runs COMMAND instruction by instruction and keeps
 * the stack of return addresses that its calls and returns make, so that each stack that can be
 * seen in the meantime is known: no table and no symbol is asked. x86_64, of the first thread.
 *
 * Prints the process ID when the program is about to begin, or after it has run freely for
 * AFTER_MS; a line on standard input lets it go on. After SECONDS, or at the program's end, writes
 * OUT and prints what it did; the program stays stopped until standard input ends.
 *
 * OUT is text: `map START END OFFSET PATH`, `node ID PARENT RETURN_ADDRESS` (a stack is a node and
 * its parents, innermost first; 0 = nothing was called since) and `at PC NODE` lines, in hex.
 */
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_DEPTH = 1 << 16,
	TABLE_SLOTS = 1 << 23, /* of nodes, and of states */
	LONGEST_CALL = 9, /* bytes of the instruction */
	SHORTEST_CALL = 2,
};

struct node {
	uint64_t ret;
	uint32_t parent, id; /* id 0 = unused slot */
};

struct state {
	uint64_t pc;
	uint32_t node;
	bool used;
};

struct open_call {
	uint64_t slot; /* where the return address is */
	uint32_t node;
};

static struct node *nodes;
static struct state *states;
static struct open_call calls[MAX_DEPTH];
static uint32_t node_count, state_count, depth;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd;

	return (h ^ h >> 32) & (TABLE_SLOTS - 1);
}

static uint32_t node_of(uint32_t parent, uint64_t ret)
{
	uint64_t i = mix(ret, parent);

	for (; nodes[i].id; i = (i + 1) & (TABLE_SLOTS - 1))
		if (nodes[i].ret == ret && nodes[i].parent == parent)
			return nodes[i].id;
	if (node_count >= TABLE_SLOTS / 4 * 3) {
		fprintf(stderr, "too many stacks\n");
		exit(1);
	}
	nodes[i] = (struct node){ .ret = ret, .parent = parent, .id = ++node_count };
	return node_count;
}

static void note_state(uint64_t pc, uint32_t node)
{
	uint64_t i = mix(pc, node);

	for (; states[i].used; i = (i + 1) & (TABLE_SLOTS - 1))
		if (states[i].pc == pc && states[i].node == node)
			return;
	if (state_count >= TABLE_SLOTS / 4 * 3) {
		fprintf(stderr, "too many states\n");
		exit(1);
	}
	states[i] = (struct state){ .pc = pc, .node = node, .used = true };
	state_count++;
}

static uint64_t word_at(pid_t pid, uint64_t address)
{
	uint64_t word = 0;
	struct iovec here = { &word, sizeof(word) }, there = { (void *)address, sizeof(word) };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof(word) ? word : 0;
}

/* What the instruction at BEFORE has done. */
static void stepped(
	pid_t pid, const struct user_regs_struct *before, const struct user_regs_struct *now)
{
	while (depth && calls[depth - 1].slot < now->rsp)
		depth--;
	if (now->rsp == before->rsp - 8 && depth < MAX_DEPTH) {
		uint64_t word = word_at(pid, now->rsp);

		if (word >= before->rip + SHORTEST_CALL && word <= before->rip + LONGEST_CALL) {
			uint32_t parent = depth ? calls[depth - 1].node : 0;

			calls[depth++] = (struct open_call){ now->rsp, node_of(parent, word) };
		}
	}
	note_state(now->rip, depth ? calls[depth - 1].node : 0);
}

/* Both on one CPU: to wake another one takes ten times as long as a step. */
static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Until the time is over, or the program ends or gets a signal, whose frame no call makes. */
static uint64_t step_for(pid_t pid, double seconds)
{
	struct user_regs_struct before, now;
	double end = seconds_now() + seconds;
	uint64_t steps = 0;
	int status;

	if (ptrace(PTRACE_GETREGS, pid, 0, &before))
		fail("PTRACE_GETREGS");
	note_state(before.rip, 0);
	for (; steps % 4096 || seconds_now() < end; steps++) {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) || waitpid(pid, &status, 0) != pid ||
			!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
			break;
		if (ptrace(PTRACE_GETREGS, pid, 0, &now))
			break;
		stepped(pid, &before, &now);
		before = now;
	}
	return steps;
}

static void write_maps(FILE *out, pid_t pid)
{
	char path[64], line[4096];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t start, end, offset;
		char file[2048] = "";

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %2047[^\n]",
			    &start, &end, &offset, file) == 4)
			fprintf(out, "map %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n", start, end,
				offset, file);
	}
	if (maps)
		fclose(maps);
}

static void write_all(const char *path, pid_t pid)
{
	FILE *out = fopen(path, "w");

	if (!out)
		fail(path);
	write_maps(out, pid);
	for (size_t i = 0; i < TABLE_SLOTS; i++) {
		if (nodes[i].id)
			fprintf(out, "node %x %x %" PRIx64 "\n", nodes[i].id, nodes[i].parent,
				nodes[i].ret);
		if (states[i].used)
			fprintf(out, "at %" PRIx64 " %x\n", states[i].pc, states[i].node);
	}
	if (fclose(out))
		fail(path);
}

static pid_t begin(char **argv, long after_ms)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fail("fork");
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		if (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout))
			_exit(127);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		fail(argv[0]);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
	if (after_ms) {
		ptrace(PTRACE_CONT, pid, 0, 0);
		usleep((useconds_t)after_ms * 1000);
		kill(pid, SIGSTOP);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			fail(argv[0]);
	}
	return pid;
}

int main(int argc, char **argv)
{
	char line[16];
	uint64_t steps;
	pid_t pid;

	if (argc < 5)
		return 2;
	nodes = calloc(TABLE_SLOTS, sizeof(*nodes));
	states = calloc(TABLE_SLOTS, sizeof(*states));
	if (!nodes || !states)
		fail("calloc");
	stay_here();
	pid = begin(argv + 4, strtol(argv[3], NULL, 10));
	printf("%d\n", pid);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	steps = step_for(pid, strtod(argv[2], NULL));
	write_all(argv[1], pid);
	printf("%" PRIu64 " steps, %u stacks, %u states\n", steps, node_count, state_count);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		;
	kill(pid, SIGKILL);
	return 0;
}
