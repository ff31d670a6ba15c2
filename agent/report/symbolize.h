/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of one frame: the pprof mapping it belongs to, its address there, and its names.
 * Keeps the mappings it made, nothing of the frames. Knows nothing of stacks or outputs.
 *
 * The address of a caller is its return address less one, inside the call instruction: only that
 * address has the call's line and, at the end of a function that never returns, the right function.
 * It is also what profile.proto asks for ("a non-leaf address may be in the middle of a call
 * instruction"), what `go tool pprof -disasm` puts on the call, and what a server that symbolizes
 * by itself looks up.
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
	bool is_file; /* content.file is a path, its addresses are the file's */
	const char *file_hash; /* hex; NULL = not known, or not asked for */
};

enum symbolize_outcome {
	SYMBOLIZE_NAMED,
	SYMBOLIZE_NO_MAPPING,
	SYMBOLIZE_NO_SYMBOL,
	SYMBOLIZE_UNREAD, /* a part of the perf map that may name it is not read yet */
	SYMBOLIZE_NO_INDEX,
	SYMBOLIZE_OUTCOMES,
	SYMBOLIZE_MARKER = SYMBOLIZE_OUTCOMES, /* no frame, but a note that one is missing */
};

struct symbolized {
	uint64_t address; /* ELF address; kaddr; pc where there is no file */
	const struct symbolize_mapping *mapping; /* NULL = none */
	enum symbolize_outcome outcome;
	bool kernel;
	size_t line_count; /* 0 unless named, or a marker */
	struct index_frame lines[INDEX_MAX_FRAMES]; /* innermost first; text lives for the call */
};

struct symbolize {
	const struct report_sources *sources;
	bool no_inlines, no_demangle, file_hashes;
	struct arena arena;
	struct intern keys; /* of the mappings, by the same numbers */
	struct symbolize_mapping **mappings;
	size_t mapping_capacity;
};

int symbolize_init(struct symbolize *s, const struct report_sources *sources,
	const struct report_options *options);
void symbolize_deinit(struct symbolize *s);
/* FRAME of generation PROCESS. -ENOMEM, or -E2BIG over a limit. */
int symbolize_frame(struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolized *ret_frame);
/* A marker named NAME (`[frames lost]`), which must outlive RET_FRAME. */
void symbolize_marker(const char *name, struct symbolized *ret_frame);

/* What tells a frame from all others of a profile. Frames with equal keys have equal names. */
struct symbolize_key {
	uint64_t address; /* of a caller: of its call */
	uint32_t module;
	uint32_t context; /* process of a private frame, tenant of a kernel address; else 0 */
	uint32_t position, reserved; /* of a runtime's frame; the others have shorter keys */
};
/* Returns the bytes of *RET_KEY that count. */
size_t symbolize_key(const struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolize_key *ret_key);
/* True when FRAME means something else in another process. */
bool symbolize_is_private(const struct symbolize *s, const struct profile_frame *frame);
