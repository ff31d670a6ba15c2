/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that identifies a store, independent of its credentials and its place in the settings:
 * what was sent to it and what is pending for it is recorded under this text. The scheme is not
 * part of it (a server is the same with TLS), nor is any secret.
 */
#include <errno.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"

enum { IDENTITY_BYTES = REMOTE_URL_BYTES + 4096 };

/* The URL without its scheme; for a directory, its path. Without trailing slashes. */
static const char *identity_place(char *url)
{
	char *scheme = strstr(url, "://");
	size_t length = strlen(url);

	while (length > 1 && url[length - 1] == '/')
		url[--length] = 0;
	return *url != '/' && scheme ? scheme + 3 : url;
}

static void add_part(struct buffer *text, const char *what, const char *value)
{
	if (value)
		buffer_printf(text, " %s=%s", what, value);
}

int remote_identity(const struct remote_options *o, char **ret_identity, char **ret_message)
{
	autocall(buffer_deinit) struct buffer text;
	char url[REMOTE_URL_BYTES];
	char *identity;
	int err;

	buffer_init(&text, IDENTITY_BYTES);
	err = remote_options_check(o, url, ret_message);
	if (err)
		return err;
	buffer_printf(&text, "%s %s", remote_type_name(o->type), identity_place(url));
	add_part(&text, "tenant", o->tenant_id);
	add_part(&text, "user", o->basic_auth_user);
	add_part(&text, "name", o->given_name);
	if (text.error)
		return text.error;
	identity = strndup((const char *)text.bytes, text.size);
	if (!identity)
		return -ENOMEM;
	*ret_identity = identity;
	return 0;
}
