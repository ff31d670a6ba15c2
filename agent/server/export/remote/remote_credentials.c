/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/secret_file.h"

static int credentials_copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

int credentials_init(struct credentials *c, const struct remote_options *options)
{
	*c = (struct credentials){ 0 };
	if (credentials_copy_text(options->bearer_token, &c->token) ||
		credentials_copy_text(options->bearer_token_file, &c->token_file) ||
		credentials_copy_text(options->basic_auth_user, &c->user) ||
		credentials_copy_text(options->basic_auth_password_file, &c->password_file)) {
		credentials_deinit(c);
		return -ENOMEM;
	}
	return 0;
}

void credentials_deinit(struct credentials *c)
{
	secret_free(&c->token);
	secret_free(&c->password);
	free(c->token_file);
	free(c->user);
	free(c->password_file);
	*c = (struct credentials){ 0 };
}

static int refresh(const char *path, char **secret, const char **ret_which)
{
	char *fresh = NULL;
	int err = path ? secret_file_read(path, REMOTE_SECRET_BYTES, &fresh) : 0;

	if (err && !*secret) {
		*ret_which = path;
		return err;
	}
	if (!fresh)
		return 0;
	secret_free(secret);
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
