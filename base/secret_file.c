/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { BLANKS_AT_END = 256 }; /* bytes of trailing white space allowed on top of the limit */

static int check_secret(const uint8_t *text, size_t length, size_t limit)
{
	if (!length)
		return -ENODATA;
	if (length > limit)
		return -E2BIG;
	for (size_t i = 0; i < length; i++) {
		if (iscntrl(text[i]))
			return -EBADMSG;
	}
	return 0;
}

int secret_file_read(const char *path, size_t limit, char **ret_secret)
{
	autocall(buffer_deinit) struct buffer text;
	char *secret = NULL;
	int err;

	buffer_init(&text, limit + BLANKS_AT_END);
	err = io_read_file(AT_FDCWD, path, &text);
	while (!err && text.size && isspace(text.bytes[text.size - 1]))
		text.size--;
	if (!err)
		err = check_secret(text.bytes, text.size, limit);
	if (!err) {
		secret = strndup((const char *)text.bytes, text.size);
		err = secret ? 0 : -ENOMEM;
	}
	if (text.bytes)
		explicit_bzero(text.bytes, text.capacity);
	if (!err)
		*ret_secret = secret;
	return err;
}

const char *secret_file_explain(int err)
{
	switch (err) {
	case -ENODATA:
		return "it is empty";
	case -E2BIG:
		return "its contents are too long";
	case -EBADMSG:
		return "it has more than one line, or control characters";
	default:
		return strerror(-err);
	}
}

void secret_free(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}
