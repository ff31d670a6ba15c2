/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcsp gives for each instruction, also in prologues and epilogues, by how many bytes the function
 * has lowered the stack pointer. On x86_64 the return address is right above those bytes. On
 * aarch64 the lowered stack pointer points to it; before that, it is in the link register. On both,
 * the caller's frame pointer is one word below the return address, once the prologue has made the
 * frame pointer point to it: ABI_REG_FRAME checks the register where a function may just have
 * begun.
 *
 * Since 1.17 functions that load the stack pointer from elsewhere are marked. Those with a frame
 * are unwound by frame pointer; the others are known by name, because each needs its own rule
 * (bpf/runtimes/go_unwind.bpf.h). 1.16 has no marks; there all are known by name.
 */
#include "symbolizer/indexer/go/go_unwind.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/runtime_go.h"
#include "symbolizer/indexer/go/go_version.h"
#include "symbolizer/indexer/go/go.h"

enum {
	WORD = 8,
	FRAMED_SINCE = 21, /* before 1.21, a function without variables had no frame */
	MAX_FRAME_BYTES = 1 << 30, /* limit of a goroutine's stack */
	/* Offset from sp while C runs: always so without a frame, until 1.20 (x86_64). */
	CGOCALL_DEPTH_PLACE = 40,
	MAX_CGOCALL_PLACE = 112,
	LINK_SEARCH_WORDS = 32,
	/*
	 * On x86_64, the code between the allocation of a frame and the setup of the frame pointer:
	 * a store and a LEA. No function switches the stack pointer so early.
	 */
	OPENING_BYTES = 10,
};

struct special {
	const char *name;
	int cfa; /* enum abi_go_cfa; ABI_CFA_SP: the usual one */
	bool framed_too; /* also applies where the function has a frame */
	uint8_t extra;
	enum { AS_ELSEWHERE, OTHER_ON_ARM, ONLY_ON_ARM } arm; /* special_frame() */
};

static const struct special specials[] = {
	{ "runtime.goexit", ABI_CFA_END, true, 0 },
	{ "runtime.mstart", ABI_CFA_END, true, 0 },
	{ "runtime.rt0_go", ABI_CFA_END, true, 0 },
	{ "runtime.systemstack", ABI_CFA_GO_SYSTEMSTACK, true, 0 },
	{ "runtime.morestack", ABI_CFA_GO_MORESTACK, true, 0 },
	{ "runtime.mcall", ABI_CFA_GO_MCALL, true, 0 },
	/* These also leave the goroutine, below morestack (newstack may inline the first). */
	{ "runtime.gopreempt_m", ABI_CFA_GO_MCALL, true, 0 },
	{ "runtime.goschedImpl", ABI_CFA_GO_MCALL, true, 0 },
	{ "runtime.preemptPark", ABI_CFA_GO_MCALL, true, 0 },
	{ "runtime.gogo", ABI_CFA_GO_GOGO, true, 0 },
	{ "gogo", ABI_CFA_GO_GOGO, true, 0 },
	{ "runtime.asmcgocall", ABI_CFA_GO_CGOCALL, false, CGOCALL_DEPTH_PLACE, OTHER_ON_ARM },
	{ "crosscall2", ABI_CFA_SP, false, 0, ONLY_ON_ARM },
	{ "racecall", ABI_CFA_GO_RACECALL, true, 0 },
	{ "runtime.cgocallback", ABI_CFA_GO_FRAME, false, 0 },
	{ "runtime.nanotime1", ABI_CFA_GO_FRAME, false, 0 },
	{ "runtime.walltime", ABI_CFA_GO_FRAME, false, 0 },
	{ "runtime.walltime1", ABI_CFA_GO_FRAME, false, 0 },
	{ "runtime.asyncPreempt", ABI_CFA_SP, true, ABI_UNWIND_INTERRUPTED },
	{ "runtime.sigtramp", ABI_CFA_SP, true, 0 }, /* the signal's frame is above it */
	{ "runtime.sigreturn", ABI_CFA_SIGNAL, true, 0 },
	{ "runtime.sigreturn__sigaction", ABI_CFA_SIGNAL, true, 0 },
};

/* State of making the rows of a function. */
struct rows {
	struct go_unwind *g;
	const struct gopclntab_function *f;
	const struct special *special; /* NULL: none */
	go_unwind_sink *sink;
	void *context;
	bool calls_c; /* returns_to_stale_frame() */
	bool opened; /* an earlier row was in the frame */
};

static bool is_named(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);

	return !strncmp(name, wanted, length) && (!name[length] || !strcmp(name + length, ".abi0"));
}

static const struct special *special_of(
	const struct go_unwind *g, const struct gopclntab_function *f)
{
	const char *name = gopclntab_name(g->table, f->name);

	for (size_t i = 0; name && i < ARRAY_SIZE(specials); i++) {
		if (specials[i].arm == ONLY_ON_ARM && g->machine != EM_AARCH64)
			continue;
		if (is_named(name, specials[i].name))
			return &specials[i];
	}
	return NULL;
}

bool go_unwind_ends_signal(const struct gopclntab *table, const struct gopclntab_function *f)
{
	const char *name = gopclntab_name(table, f->name);

	for (size_t i = 0; name && i < ARRAY_SIZE(specials); i++)
		if (specials[i].cfa == ABI_CFA_SIGNAL && is_named(name, specials[i].name))
			return true;
	return false;
}

void go_unwind_init(struct go_unwind *g, const struct gopclntab *table)
{
	struct go_version version;

	*g = (struct go_unwind){ .table = table, .machine = elf_image_machine(table->image) };
	g->framed = g->machine == EM_X86_64 && !go_version_read(table->image, &version) &&
		    version.minor != GO_VERSION_UNKNOWN && version.minor >= FRAMED_SINCE;
}

void go_unwind_deinit(struct go_unwind *g)
{
	gopclntab_runs_deinit(&g->runs);
}

/* Returns the usual rule where the stack pointer was lowered by DEPTH bytes. */
static struct abi_unwind_rule usual_rule(const struct go_unwind *g, int32_t depth)
{
	struct abi_unwind_rule rule = { .cfa = ABI_CFA_SP, .fp = ABI_REG_FRAME };

	if (g->machine == EM_AARCH64) {
		rule.cfa_off = depth;
		/* Without a frame the register is still the caller's; it points just below sp. */
		rule.fp = depth ? ABI_REG_FRAME : ABI_REG_SAME;
		rule.fp_off = depth ? (int16_t)(-depth - WORD) : 0;
		rule.ra = depth ? ABI_REG_AT_CFA : ABI_REG_SAME;
		rule.ra_off = (int16_t)-depth;
	} else {
		rule.cfa_off = depth + WORD;
		rule.fp_off = -2 * WORD;
		rule.ra = ABI_REG_AT_CFA;
		rule.ra_off = -WORD;
	}
	return rule;
}

static bool go_unwind_is_framed(const struct go_unwind *g, const struct gopclntab_function *f,
	const struct special *special)
{
	return g->framed && !special && !f->flags;
}

struct abi_unwind_rule go_unwind_entry_rule(
	const struct go_unwind *g, const struct gopclntab_function *f)
{
	struct abi_unwind_rule rule = usual_rule(g, 0);

	if (go_unwind_is_framed(g, f, special_of(g, f)))
		rule.extra = ABI_UNWIND_FRAMED;
	return rule;
}

/* Changes RULE to that of a function that is unwound by frame pointer. */
static void by_frame(const struct go_unwind *g, int32_t depth, struct abi_unwind_rule *rule)
{
	rule->cfa = ABI_CFA_GO_FRAME;
	rule->fp = ABI_REG_AT_CFA;
	rule->cfa_off = g->machine == EM_AARCH64 ? depth + WORD : 2 * WORD;
}

/*
 * crosscall2 saves registers for C. Returns the offset in its aarch64 frame of frame pointer and
 * link register: from `stp x29,x30,[sp,#OFFSET]`, or (until 1.18) `str x29,[sp,#OFFSET]`, followed
 * by one for the link register. -1 if not found.
 */
static int32_t link_place(const struct go_unwind *g, const struct gopclntab_function *f)
{
	struct cursor code = elf_image_at(g->table->image, f->entry, f->next - f->entry);

	for (int i = 0; i < LINK_SEARCH_WORDS && cursor_left(&code); i++) {
		uint32_t word = cursor_u32(&code);

		if (!code.bad && (word & 0xffe07fff) == 0xa9007bfd)
			return (int32_t)(word >> 15 & 0x3f) * WORD;
		if (!code.bad && (word & 0xffc003ff) == 0xf90003fd)
			return (int32_t)(word >> 10 & 0xfff) * WORD;
	}
	return -1;
}

/* Changes RULE, that of a frame, for functions with another frame layout on aarch64. */
static void go_unwind_special_frame(const struct go_unwind *g, const struct gopclntab_function *f,
	const struct special *special, struct abi_unwind_rule *rule)
{
	int32_t depth = rule->cfa_off, place;

	if (special->cfa == ABI_CFA_GO_CGOCALL) {
		/* The register has the frame pointer of the thread's own stack. */
		rule->cfa = ABI_CFA_GO_CGOCALL;
		rule->fp = ABI_REG_AT_CFA;
		return;
	}
	place = link_place(g, f);
	if (place < 0 || place > depth - 2 * WORD) {
		*rule = (struct abi_unwind_rule){ .cfa = ABI_CFA_NONE };
		return;
	}
	rule->fp = ABI_REG_AT_CFA;
	rule->fp_off = (int16_t)(place - depth);
	rule->ra_off = (int16_t)(place + WORD - depth);
}

/*
 * Where asmcgocall (x86_64) stores its depth on the goroutine's stack, in bytes above sp; its g is
 * in the next word and stored first: and $-16,%rsp; mov %rdi,PLACE+8(%rsp). Negative: not found.
 */
static int cgocall_place(const struct go_unwind *g, const struct gopclntab_function *f)
{
	static const uint8_t wanted[] = { 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0x7c, 0x24 };
	struct cursor code = elf_image_at(g->table->image, f->entry, f->next - f->entry);

	for (; cursor_left(&code) > sizeof(wanted); cursor_skip(&code, 1)) {
		int place = code.at[sizeof(wanted)] - WORD;

		if (!memcmp(code.at, wanted, sizeof(wanted)))
			return place % WORD || place > MAX_CGOCALL_PLACE ? -1 : place;
	}
	return -1;
}

/*
 * Asmcgocall's rule with a frame (x86_64, since 1.21). C code still has the frame's address in the
 * frame pointer, but if it calls back, the goroutine's stack may have moved meanwhile, and another
 * goroutine may use the old one. What asmcgocall saved stays right.
 */
static void framed_cgocall(
	const struct go_unwind *g, const struct gopclntab_function *f, struct abi_unwind_rule *rule)
{
	int place = cgocall_place(g, f);

	if (place < 0)
		return;
	rule->cfa = ABI_CFA_GO_CGOCALL;
	rule->fp = ABI_REG_AT_CFA;
	rule->extra = (uint8_t)place;
}

static bool is_usable(const struct go_unwind *g, int32_t depth)
{
	if (depth < 0 || depth > MAX_FRAME_BYTES || depth % WORD)
		return false;
	/* Offsets from the CFA have 16 bits; larger frames are unwound by frame pointer. */
	return g->machine != EM_AARCH64 || depth + WORD <= INT16_MAX;
}

static struct abi_unwind_rule go_unwind_rule_of(const struct go_unwind *g,
	const struct gopclntab_function *f, const struct special *special, int32_t depth)
{
	struct abi_unwind_rule rule = { .cfa = ABI_CFA_NONE };
	bool framed = depth > 0;

	if (!is_usable(g, depth))
		return rule;
	if (special ? special->cfa == ABI_CFA_END : f->flags & GOPCLNTAB_TOP_FRAME) {
		rule.cfa = ABI_CFA_END;
		return rule;
	}
	rule = usual_rule(g, depth);
	if (special && special->cfa == ABI_CFA_SIGNAL)
		return (struct abi_unwind_rule){ .cfa = ABI_CFA_SIGNAL };
	if (go_unwind_is_framed(g, f, special))
		rule.extra = ABI_UNWIND_FRAMED;
	if (special && special->arm && g->machine == EM_AARCH64 && framed) {
		go_unwind_special_frame(g, f, special, &rule);
		return rule;
	}
	if (special && (special->framed_too || !framed)) {
		if (special->cfa != ABI_CFA_GO_FRAME)
			rule.cfa = (uint8_t)special->cfa;
		/* Its caller has no frame yet: the frame pointer is the caller's caller's. */
		if (special->cfa == ABI_CFA_GO_MORESTACK)
			rule.fp = ABI_REG_UNDEFINED;
		rule.extra = special->extra;
		return rule;
	}
	if (framed && (special || f->flags & GOPCLNTAB_WRITES_SP))
		by_frame(g, depth, &rule);
	if (framed && special && special->cfa == ABI_CFA_GO_CGOCALL)
		framed_cgocall(g, f, &rule);
	return rule;
}

/*
 * Whether F is cgocall of x86_64 until 1.20, where asmcgocall has no frame: C code returns with the
 * frame pointer that cgocall had before the goroutine's stack moved.
 */
static bool returns_to_stale_frame(const struct go_unwind *g, const struct gopclntab_function *f)
{
	const char *name = gopclntab_name(g->table, f->name);

	return g->machine == EM_X86_64 && !g->framed && name && is_named(name, "runtime.cgocall");
}

/* Passes the row [LOW, HIGH), where the stack pointer was lowered by DEPTH, to the sink. */
static void go_unwind_put_row(struct rows *rows, uint64_t low, uint64_t high, int32_t depth)
{
	struct abi_unwind_rule rule = go_unwind_rule_of(rows->g, rows->f, rows->special, depth);

	if (rows->calls_c && depth > 0)
		rule.fp = ABI_REG_AT_CFA;
	if ((rule.cfa == ABI_CFA_GO_FRAME || (rows->calls_c && depth > 0)) && !rows->opened &&
		rows->g->machine == EM_X86_64) {
		struct abi_unwind_rule usual = usual_rule(rows->g, depth);
		uint64_t end = MIN(high, low + OPENING_BYTES);

		rows->opened = true;
		rows->sink(rows->context, low, end, &usual);
		low = end;
	}
	if (low < high)
		rows->sink(rows->context, low, high, &rule);
}

int go_unwind_function(struct go_unwind *g, const struct gopclntab_function *f,
	go_unwind_sink *sink, void *context)
{
	struct rows rows = {
		.g = g,
		.f = f,
		.special = special_of(g, f),
		.sink = sink,
		.context = context,
		.calls_c = returns_to_stale_frame(g, f),
	};
	uint64_t low = f->entry;
	int err;

	err = gopclntab_runs_read(g->table, f->pcsp, (uint32_t)(f->next - f->entry), &g->runs);
	if (err)
		return err;
	/* Not called: the return address is its first instruction, and lookups subtract 1. */
	if (rows.special && rows.special->cfa == ABI_CFA_SIGNAL)
		low--;
	for (size_t i = 0; i < g->runs.count; i++) {
		go_unwind_put_row(
			&rows, low, f->entry + g->runs.items[i].end, g->runs.items[i].value);
		low = f->entry + g->runs.items[i].end;
	}
	return 0;
}
