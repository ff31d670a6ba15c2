/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign names on a terminal, and its input: no byte controls the terminal, no line is too wide.
 */
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/top/keys.h"
#include "agent/top/text.h"
#include "agent/top/view.h"
#include "base/utf8.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

static void try_text(const uint8_t *data, size_t size)
{
	size_t columns = size ? data[0] : 0, used;
	char *text = malloc(size + 1);
	struct buffer out;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	buffer_init(&out, 1 << 20);
	used = text_put(&out, text, columns);
	if (used > columns || !utf8_is_clean((const char *)out.bytes, out.size))
		abort();
	for (size_t i = 0; i < out.size; i++) {
		if (out.bytes[i] < 0x20 || out.bytes[i] == 0x7f)
			abort();
	}
	buffer_deinit(&out);
	free(text);
}

static void try_keys(const uint8_t *data, size_t size)
{
	struct keys keys = { 0 };
	struct view view = { 0 };

	for (size_t i = 0; i < size; i++) {
		int key = keys_feed(&keys, data[i]);

		if (key != KEY_NONE)
			(void)view_key(&view, key);
		if (strnlen(view.filter, sizeof(view.filter)) == sizeof(view.filter) ||
			!rows_have_key(view.by, view.key))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_text(data, size);
	try_keys(data, size);
	return 0;
}
