/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store is, as opposed to how one gets in and where it stands in the settings: what was sent
 * to it and what still waits for it is remembered under this text. The scheme is no part of it (the
 * server is the same one with TLS), nor is anything secret.
 */
#include <errno.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"

enum { IDENTITY_BYTES = REMOTE_URL_BYTES + 4096 };

/* Where the server is; of a directory, its path without slashes at its end. */
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
	int err = remote_options_check(o, url, ret_message);

	if (err)
		return err;
	buffer_init(&text, IDENTITY_BYTES);
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
