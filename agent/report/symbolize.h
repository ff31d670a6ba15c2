/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Symbolizes one frame: its pprof mapping, its address in that mapping, and its names. Keeps the
 * mappings it makes, but no frames. Knows nothing of stacks or outputs.
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

#include "agent/report/report.h"
#include "base/arena.h"
#include "base/intern.h"
#include "pprof/pprof.h"

struct symbolize_mapping {
	struct pprof_mapping content;
	bool is_file; /* content.file is a path, addresses are in that file */
	const char *file_hash; /* hex; NULL = unknown or not wanted */
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
	uint64_t address; /* ELF address or kaddr; pc if there is no file */
	const struct symbolize_mapping *mapping; /* NULL = none */
	enum symbolize_outcome outcome;
	bool kernel;
	size_t line_count; /* 0 unless named or a marker */
	struct index_frame lines[INDEX_MAX_FRAMES]; /* innermost first; valid during the call */
};

struct symbolize {
	const struct report_sources *sources;
	bool no_inlines, no_demangle, file_hashes;
	struct arena arena;
	struct intern keys; /* keys of mappings, with matching numbers */
	struct symbolize_mapping **mappings;
	size_t mapping_capacity;
};

int symbolize_init(struct symbolize *s, const struct report_sources *sources,
	const struct report_options *options);
void symbolize_deinit(struct symbolize *s);
/* Symbolizes FRAME of process generation PROCESS. Returns -ENOMEM, or -E2BIG over a limit. */
int symbolize_frame(struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolized *ret_frame);
/* Makes a marker named NAME (`[frames lost]`), which must outlive RET_FRAME. */
void symbolize_marker(const char *name, struct symbolized *ret_frame);

/* Identifies a frame within a profile. Frames with equal keys have equal names. */
struct symbolize_key {
	uint64_t address; /* for callers, of the call instruction */
	uint32_t module;
	uint32_t context; /* process of a private frame, tenant of a kernel address; else 0 */
	uint32_t position, reserved; /* runtime frames only; other keys are shorter */
};
/* Returns the size of the key in bytes; the rest of *RET_KEY is unused. */
size_t symbolize_key(const struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolize_key *ret_key);
/* True if FRAME means something else in another process. */
bool symbolize_is_private(const struct symbolize *s, const struct profile_frame *frame);
