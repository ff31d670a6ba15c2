/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kallsyms/kallsyms_parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "symbolizer/kallsyms/kallsyms.h"

enum {
	READ_BYTES = 64 * 1024,
	MAX_LINES = 8 << 20,
	MAX_TEXT_BYTES = 256 << 20,
	MAX_MODULES = UINT16_MAX,
	MAX_NAME_BYTES = 512, /* KSYM_NAME_LEN */
	RANK_WEAK = 0x10,
	RANK_LOCAL = 0x20,
	RANK_ALIAS = 0x08, /* a clone's suffix after a dot, or the prefix of early boot code */
	MAX_UNDERSCORES = 7,
};

static const char pad_prefix[] = KALLSYMS_PADDING;

void ksym_parse_init(struct ksym_parse *p)
{
	*p = (struct ksym_parse){ 0 };
	buffer_init(&p->text, MAX_TEXT_BYTES);
	buffer_append(&p->text, "", 1);
}

void ksym_parse_deinit(struct ksym_parse *p)
{
	free(p->lines);
	free(p->modules);
	buffer_deinit(&p->text);
}

/* ---- one line ------------------------------------------------------------------------------ */

/* Fields of a line; strings are not terminated. */
struct fields {
	uint64_t kaddr;
	char type;
	const char *name, *module;
	size_t name_size, module_size;
};

static bool parse_address(struct cursor *c, uint64_t *ret_kaddr)
{
	uint64_t kaddr = 0;
	unsigned int digits = 0;

	for (;; digits++) {
		uint8_t byte = cursor_u8(c);

		if (byte >= '0' && byte <= '9')
			kaddr = kaddr << 4 | (uint64_t)(byte - '0');
		else if (byte >= 'a' && byte <= 'f')
			kaddr = kaddr << 4 | (uint64_t)(byte - 'a' + 10);
		else if (byte == ' ' && digits > 0 && digits <= 16)
			break;
		else
			return false;
	}
	*ret_kaddr = kaddr;
	return true;
}

/* Names are printable ASCII, even Rust's mangled ones. */
static bool is_plain(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	}
	return size > 0;
}

/* `ADDRESS TYPE NAME`, then a tab and `[MODULE]` for modules. */
static bool parse_fields(const char *line, size_t size, struct fields *ret_fields)
{
	struct cursor c = cursor_over(line, size);
	struct fields f = { 0 };
	const char *tab;
	size_t left;

	if (!parse_address(&c, &f.kaddr))
		return false;
	f.type = (char)cursor_u8(&c);
	if (cursor_u8(&c) != ' ')
		return false;
	left = cursor_left(&c);
	f.name = cursor_bytes(&c, left);
	if (!f.name)
		return false;
	tab = memchr(f.name, '\t', left);
	f.name_size = tab ? (size_t)(tab - f.name) : left;
	if (tab) {
		f.module_size = left - f.name_size - 1;
		if (f.module_size < 3 || tab[1] != '[' || tab[f.module_size] != ']')
			return false;
		f.module = tab + 2;
		f.module_size -= 2;
		if (f.module_size >= KSYM_MODULE_BYTES || !is_plain(f.module, f.module_size))
			return false;
	}
	if (f.name_size > MAX_NAME_BYTES || !is_plain(f.name, f.name_size))
		return false;
	*ret_fields = f;
	return true;
}

static bool kallsyms_parse_is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static bool is_name(const struct fields *f, const char *text)
{
	return f->name_size == strlen(text) && !memcmp(f->name, text, f->name_size);
}

static bool starts_with(const struct fields *f, const char *text)
{
	size_t size = strlen(text);

	return f->name_size >= size && !memcmp(f->name, text, size);
}

static bool ends_with(const struct fields *f, const char *text)
{
	size_t size = strlen(text);

	return f->name_size >= size && !memcmp(f->name + f->name_size - size, text, size);
}

/* Start and end marks of the kernel's code, listed with any symbol type. */
static bool is_border(const struct fields *f)
{
	static const char *const names[] = { "_text", "_stext", "_etext", "_sinittext",
		"_einittext" };

	if (f->module || f->name[0] != '_')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (is_name(f, names[i]))
			return true;
	}
	return false;
}

/* The linker script's marks are not functions: no name is better than __sched_text_end. */
static bool is_label(const struct fields *f)
{
	return is_border(f) || (!f->module && f->name[0] == '_' &&
				       (ends_with(f, "_text_start") || ends_with(f, "_text_end")));
}

static uint8_t rank(const struct fields *f)
{
	uint8_t value = 0, underscores = 0;

	if (is_label(f))
		return KSYM_RANK_LABEL;
	if (f->type == 't')
		value = RANK_LOCAL;
	else if (f->type != 'T')
		value = RANK_WEAK;
	if (memchr(f->name, '.', f->name_size) || starts_with(f, "__pi_"))
		value |= RANK_ALIAS;
	while (underscores < MAX_UNDERSCORES && underscores < f->name_size &&
		f->name[underscores] == '_')
		underscores++;
	return value | underscores;
}

/* ---- what stays of it ---------------------------------------------------------------------- */

/* A module's lines are contiguous, so search from the last module. */
static int kallsyms_parse_find_module(
	struct ksym_parse *p, const struct fields *f, uint16_t *ret_number)
{
	int err;

	if (!f->module) {
		*ret_number = KSYM_KERNEL;
		return 0;
	}
	for (size_t i = p->module_count; i-- > 0;) {
		const char *name = p->modules[i].name;

		if (!memcmp(name, f->module, f->module_size) && !name[f->module_size]) {
			*ret_number = (uint16_t)(i + 1);
			return 0;
		}
	}
	err = array_reserve(p->modules, p->module_capacity, p->module_count + 1, MAX_MODULES);
	if (err)
		return err;
	memset(&p->modules[p->module_count], 0, sizeof(*p->modules));
	memcpy(p->modules[p->module_count].name, f->module, f->module_size);
	*ret_number = (uint16_t)++p->module_count;
	return 0;
}

/*
 * x86 kernels name the padding before each function `__pfx_FUNCTION`: half of all symbols. The
 * function's own name is then a suffix of the text added last.
 */
static bool shares_last_name(const struct ksym_parse *p, const struct fields *f)
{
	size_t prefix = strlen(pad_prefix), size = prefix + f->name_size + 1;
	const char *last;

	if (!p->count || p->text.size < size)
		return false;
	last = (const char *)p->text.bytes + p->text.size - size;
	return p->lines[p->count - 1].name == p->text.size - size &&
	       !memcmp(last, pad_prefix, prefix) && !memcmp(last + prefix, f->name, f->name_size);
}

static int kallsyms_parse_add_name(struct ksym_parse *p, const struct fields *f, uint32_t *ret_name)
{
	uint32_t name = (uint32_t)p->text.size;
	int err;

	if (shares_last_name(p, f)) {
		*ret_name = (uint32_t)(p->text.size - f->name_size - 1);
		return 0;
	}
	err = buffer_append(&p->text, f->name, f->name_size);
	if (!err)
		err = buffer_append(&p->text, "", 1);
	if (!err)
		*ret_name = name;
	return err;
}

static void note_mark(struct ksym_parse *p, const struct fields *f)
{
	struct kallsyms_marks *m = &p->marks;
	const struct {
		const char *name;
		uint64_t *kaddr;
	} marks[] = {
		{ "_text", &m->text }, { "_stext", &m->stext }, { "_etext", &m->etext },
		{ "__entry_text_start", &m->entry }, { "__entry_text_end", &m->entry_end },
		{ "__start_orc_unwind_ip", &m->orc_addresses },
		{ "__stop_orc_unwind_ip", &m->orc_addresses_end },
		{ "__start_orc_unwind", &m->orc_rules }, { "__stop_orc_unwind", &m->orc_rules_end },
		{ "return_to_handler", &m->trampolines[0] },
		{ "arch_rethook_trampoline", &m->trampolines[1] },
		{ "__kretprobe_trampoline", &m->trampolines[2] },
		{ "kretprobe_trampoline", &m->trampolines[2] }, /* before 5.15 */
	};

	if (f->module || !strchr("_rak", f->name[0]))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (is_name(f, marks[i].name))
			*marks[i].kaddr = f->kaddr;
}

static int kallsyms_parse_add_line(struct ksym_parse *p, const char *text, size_t size)
{
	struct ksym_line line;
	struct fields f;
	bool border;
	int err;

	if (!parse_fields(text, size, &f))
		return 0;
	note_mark(p, &f);
	border = is_border(&f);
	if (!kallsyms_parse_is_code(f.type) && !border)
		return 0;
	if (!f.kaddr) {
		p->hidden++;
		return 0;
	}
	line = (struct ksym_line){ .kaddr = f.kaddr, .rank = rank(&f) };
	err = array_reserve(p->lines, p->capacity, p->count + 1, MAX_LINES);
	if (!err)
		err = kallsyms_parse_find_module(p, &f, &line.module);
	if (!err && line.rank != KSYM_RANK_LABEL)
		err = kallsyms_parse_add_name(p, &f, &line.name);
	if (!err)
		p->lines[p->count++] = line;
	return err;
}

/* Parses the complete lines in BYTES; *RET_USED is their size. */
static int kallsyms_parse_add_lines(
	struct ksym_parse *p, const char *bytes, size_t size, size_t *ret_used)
{
	size_t used = 0;
	const char *newline;
	int err = 0;

	while (!err && (newline = memchr(bytes + used, '\n', size - used))) {
		size_t length = (size_t)(newline - bytes) - used;

		err = kallsyms_parse_add_line(p, bytes + used, length);
		used += length + 1;
	}
	*ret_used = used;
	return err;
}

int ksym_parse_file(struct ksym_parse *p, int fd)
{
	autofree char *bytes = malloc(READ_BYTES);
	size_t have = 0, used;
	ssize_t got;
	int err;

	if (!bytes || p->text.error)
		return -ENOMEM;
	for (;;) {
		got = read(fd, bytes + have, READ_BYTES - have);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return kallsyms_parse_add_line(p, bytes, have);
		have += (size_t)got;
		err = kallsyms_parse_add_lines(p, bytes, have, &used);
		if (err)
			return err;
		have -= used;
		memmove(bytes, bytes + used, have);
		if (have == READ_BYTES)
			return -EBADMSG; /* no kernel line is that long */
	}
}
