/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <string.h>

enum {
	/* libiberty refuses names over 1024 bytes by default; up to this its stack use is fine. */
	MAX_LINKAGE_BYTES = 4096,
	LONG_LINKAGE_BYTES = 1024,
	MAX_NAME_BYTES = 64 * 1024,
};

/* Suffixes that compilers append to clones of a function. */
static const char *const suffixes[] = { "isra", "constprop", "part", "cold", "lto_priv", "clone",
	"localalias", "llvm", "abi0", "abiinternal", "hot", "unlikely", "__uniq", "warm" };

/* Returns the length of a clone suffix, `.word` or `.word.123`, at TEXT; 0 = none. */
static size_t suffix_length(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t length = 1 + strlen(suffixes[i]);

		if (strncmp(text + 1, suffixes[i], length - 1))
			continue;
		while (text[length] == '.' && isdigit((unsigned char)text[length + 1]))
			for (length++; isdigit((unsigned char)text[length]);)
				length++;
		if (text[length] == 0 || text[length] == '.')
			return length;
	}
	return 0;
}

size_t demangle_plain_length(const char *name)
{
	for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
		const char *at = dot;
		size_t length;

		while (*at == '.' && (length = suffix_length(at)))
			at += length;
		if (!*at && dot > name)
			return (size_t)(dot - name);
	}
	return strlen(name);
}

bool demangle_is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "__Z", 3) || !strncmp(name, "_R", 2);
}

static void demangle_append(const char *text, size_t length, void *context)
{
	struct buffer *name = context;

	buffer_append(name, text, length);
}

/* Demangles LENGTH bytes of LINKAGE, which is mangled. */
static int demangle_mangled(const char *linkage, size_t length, struct buffer *out)
{
	size_t start = out->size;
	int options = DMGL_PARAMS | DMGL_ANSI;
	char plain[MAX_LINKAGE_BYTES + 1];
	struct buffer name;
	int ok;

	memcpy(plain, linkage, length);
	plain[length] = 0;
	if (length > LONG_LINKAGE_BYTES)
		options |= DMGL_NO_RECURSE_LIMIT;
	buffer_init(&name, MAX_NAME_BYTES);
	ok = rust_demangle_callback(plain, options, demangle_append, &name);
	if (!ok) {
		name.size = 0;
		ok = cplus_demangle_v3_callback(plain, options, demangle_append, &name);
	}
	if (ok && !name.error && name.size)
		buffer_append(out, name.bytes, name.size);
	buffer_deinit(&name);
	if (out->size == start && !out->error)
		buffer_append(out, linkage, length);
	return out->error;
}

/* Returns the stub suffix of LINKAGE, NULL if there is none. */
static const char *stub_suffix(const char *linkage)
{
	size_t length = strlen(linkage), suffix = strlen(DEMANGLE_STUB);
	const char *at = linkage + length - suffix;

	return length > suffix && !strcmp(at, DEMANGLE_STUB) ? at : NULL;
}

int demangle(const char *linkage, struct buffer *out)
{
	const char *stub = stub_suffix(linkage);
	size_t length = stub ? (size_t)(stub - linkage) : demangle_plain_length(linkage);

	if (!demangle_is_mangled(linkage) || length > MAX_LINKAGE_BYTES)
		return buffer_append(out, linkage, stub ? strlen(linkage) : length);
	demangle_mangled(linkage, length, out);
	return stub ? buffer_append(out, stub, strlen(stub)) : out->error;
}

/* ThinLTO renames static functions, which become visible to other files: `f.llvm.123` is no clone.
 */
static const char *clone_suffix(const char *linkage)
{
	const char *suffix = linkage + demangle_plain_length(linkage);

	return strncmp(suffix, ".llvm.", 6) ? suffix : suffix + suffix_length(suffix);
}

int demangle_clone(const char *linkage, struct buffer *out)
{
	const char *suffix = clone_suffix(linkage);
	int err = demangle(linkage, out);

	if (err || !*suffix)
		return err;
	if (!demangle_is_mangled(linkage))
		return buffer_append(out, suffix, strlen(suffix));
	err = buffer_append(out, " [clone ", 8);
	if (!err)
		err = buffer_append(out, suffix, strlen(suffix));
	return err ? err : buffer_append(out, "]", 1);
}
