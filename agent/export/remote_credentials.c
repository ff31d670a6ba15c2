/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/export/remote_internal.h"
#include "base/cleanup.h"
#include "base/io.h"

static int copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

static void forget(char **secret)
{
	if (*secret)
		explicit_bzero(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}

int credentials_init(struct credentials *c, const struct remote_options *options)
{
	*c = (struct credentials){ 0 };
	if (copy_text(options->bearer_token, &c->token) ||
		copy_text(options->bearer_token_file, &c->token_file) ||
		copy_text(options->basic_auth_user, &c->user) ||
		copy_text(options->basic_auth_password_file, &c->password_file)) {
		credentials_deinit(c);
		return -ENOMEM;
	}
	return 0;
}

void credentials_deinit(struct credentials *c)
{
	forget(&c->token);
	forget(&c->password);
	free(c->token_file);
	free(c->user);
	free(c->password_file);
	*c = (struct credentials){ 0 };
}

/* A line break inside would end the header and begin another. */
static int check_secret(const char *text, size_t length)
{
	if (!length)
		return -ENODATA;
	for (size_t i = 0; i < length; i++) {
		if (iscntrl((unsigned char)text[i]))
			return -EBADMSG;
	}
	return 0;
}

static int read_secret(const char *path, char **ret_secret)
{
	autocall(buffer_deinit) struct buffer text;
	int err;

	buffer_init(&text, REMOTE_SECRET_BYTES);
	err = io_read_file(AT_FDCWD, path, &text);
	while (!err && text.size && isspace(text.bytes[text.size - 1]))
		text.size--;
	if (!err)
		err = check_secret((const char *)text.bytes, text.size);
	if (!err) {
		*ret_secret = strndup((const char *)text.bytes, text.size);
		err = *ret_secret ? 0 : -ENOMEM;
	}
	if (text.bytes)
		explicit_bzero(text.bytes, text.capacity);
	return err;
}

static int refresh(const char *path, char **secret, const char **ret_which)
{
	char *fresh = NULL;
	int err = path ? read_secret(path, &fresh) : 0;

	if (err && !*secret) {
		*ret_which = path;
		return err;
	}
	if (!fresh)
		return 0;
	forget(secret);
	*secret = fresh;
	return 0;
}

int credentials_refresh(struct credentials *c, const char **ret_which)
{
	int err = refresh(c->token_file, &c->token, ret_which);

	return err ? err : refresh(c->password_file, &c->password, ret_which);
}

void credentials_hide(char *text, const char *secret)
{
	size_t length = secret ? strlen(secret) : 0;
	char *at = text;

	while (length && (at = strstr(at, secret)) != NULL) {
		memset(at, '*', length);
		at += length;
	}
}
