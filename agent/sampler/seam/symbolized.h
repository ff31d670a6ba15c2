/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The questions of a report, and their answers. What a frame is called is in index files, perf maps
 * and the kernel's symbols, of which the sampler knows the state; a report asks for each distinct
 * frame once and gets its pprof mapping, its address in that mapping and its names. Frames, modules
 * and processes are given by number, answers are plain data. Knows nothing of stacks or outputs.
 *
 * The address of a caller is its return address minus one, inside the call instruction: only that
 * address has the line of the call and, at the end of a function that never returns, the right
 * function. profile.proto asks for it ("a non-leaf address may be in the middle of a call
 * instruction"), `go tool pprof -disasm` attributes it to the call, and servers that symbolize look
 * it up.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/frame.h"
#include "base/file_hash.h"
#include "symbolizer/index/index_frame.h"

/* Who answers; the sampler's own. The answers are those of one window. */
struct symbolize;

struct symbolized_mapping {
	uint64_t start, limit, offset;
	const char *file; /* a path if `is_file`; else a name in brackets, or a module's name */
	const char *build_id; /* hex, "" = none */
	const char *file_hash; /* hex; NULL = not known */
	bool is_file; /* addresses are in that file */
};

enum symbolize_outcome {
	SYMBOLIZE_NAMED,
	SYMBOLIZE_NO_MAPPING,
	SYMBOLIZE_NO_SYMBOL,
	SYMBOLIZE_UNREAD, /* the part of the perf map that may name it is not read yet */
	SYMBOLIZE_NO_INDEX,
	SYMBOLIZE_NO_RUNTIME, /* a runtime's, but of a kind that none has */
	SYMBOLIZE_OUTCOMES,
	SYMBOLIZE_MARKER = SYMBOLIZE_OUTCOMES, /* not a frame: a note that frames are missing */
};

struct symbolized {
	/*
	 * ELF address; of the kernel its link address (symbolizer/kallsyms/link_address.h); pc if
	 * there is no file.
	 */
	uint64_t address;
	/* NULL = none. Valid until the sampler answers for the next window. */
	const struct symbolized_mapping *mapping;
	enum symbolize_outcome outcome;
	bool kernel;
	size_t line_count; /* 0 unless named, nameless or a marker */
	/*
	 * Code without a symbol in a known function: the only line has the function's start for a
	 * name, `libfoo.so+0x62f00`, and no linkage name. The outcome is SYMBOLIZE_NO_SYMBOL.
	 */
	bool nameless;
	/* Innermost first. Their texts are valid until the next question. */
	struct index_frame lines[INDEX_MAX_FRAMES];
};

/* How a program was built. */
struct symbolized_program {
	struct file_hash file_hash;
	const char *toolchain; /* "GCC 12.2.0", …; "" = not known; valid until the next question */
	bool is_static, is_stripped;
};

/* Symbolizes FRAME of process generation PROCESS. Returns -ENOMEM, or -E2BIG over a limit. */
int symbolize_frame(struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolized *ret_frame);
/*
 * Whether KADDR is in the code by which system calls, interrupts and exceptions enter the kernel.
 * The kernel frame outside of it is where an interrupt or an exception came, which is no return
 * address. The few calls into that code (error_entry(); before Linux 5.12 asm_call_on_stack()) end
 * no function: without the byte before, at most the line is the next one's. Never true without the
 * kernel's symbols.
 */
bool symbolize_is_kernel_entry(const struct symbolize *s, uint64_t kaddr);
/* Tells how the program in module MODULE was built; false if the module has no index. */
bool symbolize_program(
	const struct symbolize *s, uint32_t module, struct symbolized_program *ret_program);
