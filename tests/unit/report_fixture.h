/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The data of agent/report's tests: two processes, a program with an index, a library without one,
 * JIT code of process `one`, a kernel with a module and a BPF program.
 */
#include <stdint.h>

#include "agent/report/report.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/sealing.h"
#include "agent/sampler/symbolize/symbolize.h"
#include "symbolizer/kallsyms/link_address.h"

enum {
	SEGMENT_ADDRESS = 0x401000,
	SEGMENT_SIZE = 0x1000,
	SEGMENT_OFFSET = 0x1000,
	MAIN = SEGMENT_OFFSET + 0x100, /* file offset of main, 0x100 bytes */
	START = SEGMENT_OFFSET + 0x300, /* of _start */
	LIBC_START = SEGMENT_OFFSET + 0x500, /* of __libc_start_main */
	MCALL = SEGMENT_OFFSET + 0x700, /* of runtime.mcall */
	NAMELESS = SEGMENT_OFFSET + 0x800, /* code without a symbol */
	UNWOUND = SEGMENT_OFFSET + 0x900, /* without one, in a known function of 0x80 bytes */
	JIT_PC = 0x7000,
};

#define PROGRAM_HASH "01020304000000000000000000000009" /* the program's file hash */
/* Where KASLR has put the kernel, and where it is linked. */
#define KERNEL_BASE UINT64_C(0xffffffff9a400000)
#define KERNEL_LINKED UINT64_C(0xffffffff81000000)
#define FAULT_ENTRY (KERNEL_BASE + 0x2910)
#define KERNEL_NUMBER (KERNEL_BASE + 0x2b00) /* put_dec is before it */

struct fixture {
	struct metrics metrics;
	struct modules *modules;
	struct processes *processes;
	struct profile *profile;
	struct window_processes described; /* as of the last call of describe() */
	struct kallsyms *kallsyms;
	struct index *index, *kernel_index; /* the latter is used if `kernel_lines` */
	struct perf_map *jit;
	uint32_t jit_process; /* the only generation with a perf map */
	struct module *program, *library, *anon, *vsyscall;
	struct process *one, *two;
	int proc_fd;
	bool no_kernel_symbols, kernel_lines;
	/* As in struct symbolize_options; NULL = no runtime is known. */
	void (*runtime_names)(void *context, uint32_t process, const struct abi_frame *frame,
		struct runtime_names *names);
	struct symbolize *symbolize;
	unsigned int looked_up; /* times that the index was searched */
	struct report_sources sources;
	struct report_options options;
};

/* cmocka's setup and teardown; *STATE is a struct fixture. */
int report_setup(void **state);
int report_teardown(void **state);

/* Describes the processes of the profile's samples as they are now. */
const struct window_processes *describe(struct fixture *f);
/* Like describe(); returns the sources of a report of the profile. */
const struct report_sources *sealed_sources(struct fixture *f);

/* As sealed_sources(), with all names kept from a report before (agent/sampler/symbolize). */
const struct report_sources *known_sources(struct fixture *f);

/* Frees what describe() and the reports since then allocated. */
void unseal(struct fixture *f);

/* The sample types of a window. */
struct sample_types sample_types_of(bool cycles, bool off_cpu);

struct profile_frame in_program(uint64_t file_off, uint32_t flags, const struct fixture *f);
/* A frame in page PAGE of the kernel: 1 is do_syscall_64, 2 is vfs_read. */
struct profile_frame in_kernel(unsigned int page, uint32_t flags);
void add_stack(struct fixture *f, const struct process *p, const struct profile_stack *stack,
	uint64_t count);
/* Adds a wait of WAIT_NS. */
void add_wait(struct fixture *f, const struct process *p, const struct profile_stack *stack,
	uint64_t wait_ns);
/* Adds one sample with user frames only. */
void add_user(struct fixture *f, const struct process *p, const struct profile_frame *frames,
	uint32_t count);
