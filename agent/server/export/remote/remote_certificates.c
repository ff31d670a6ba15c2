/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates are replaced while the agent runs, under the same names. libcurl caches by name: a
 * CA file's content for a day, a connection as long as it is used. So libcurl is given the content,
 * read before each request; when it changes, nothing cached matches and libcurl opens a new
 * connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { FILE_LIMIT_BYTES = 4 << 20 }; /* distributions' bundles have a quarter of a MiB */

static int set_path(struct certificate_file *file, const char *path, CURLoption option)
{
	file->option = option;
	buffer_init(&file->content, FILE_LIMIT_BYTES);
	file->path = path ? strdup(path) : NULL;
	return path && !file->path ? -ENOMEM : 0;
}

int certificates_init(struct certificates *c, const struct remote_options *o)
{
	const char *key = o->client_key ? o->client_key : o->client_cert;
	int err = set_path(&c->files[CERTIFICATES_CA], o->ca_file, CURLOPT_CAINFO_BLOB);

	if (!err)
		err = set_path(
			&c->files[CERTIFICATES_CLIENT], o->client_cert, CURLOPT_SSLCERT_BLOB);
	return err ? err : set_path(&c->files[CERTIFICATES_KEY], key, CURLOPT_SSLKEY_BLOB);
}

static void wipe(struct buffer *content)
{
	if (content->bytes)
		explicit_bzero(content->bytes, content->capacity);
	buffer_deinit(content);
}

void certificates_deinit(struct certificates *c)
{
	for (size_t i = 0; i < CERTIFICATES_FILES; i++) {
		wipe(&c->files[i].content);
		free(c->files[i].path);
	}
	*c = (struct certificates){ 0 };
}

static bool certificates_is_same(const struct buffer *a, const struct buffer *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static int give_to_curl(CURL *easy, CURLoption option, const struct buffer *content)
{
	struct curl_blob blob = { content->bytes, content->size, CURL_BLOB_COPY };

	return curl_easy_setopt(easy, option, &blob) == CURLE_OK ? 0 : -ENOMEM;
}

static int refresh_file(struct certificate_file *file, CURL *easy)
{
	autocall(wipe) struct buffer fresh;
	int err;

	buffer_init(&fresh, FILE_LIMIT_BYTES);
	err = io_read_file(AT_FDCWD, file->path, &fresh);
	if (!err && !fresh.size)
		err = -ENODATA;
	if (err)
		/* The previous content may still work. */
		return file->content.size ? 0 : err;
	if (file->content.size && certificates_is_same(&fresh, &file->content))
		return 0;
	err = give_to_curl(easy, file->option, &fresh);
	if (err)
		return err;
	wipe(&file->content);
	file->content = fresh;
	buffer_init(&fresh, FILE_LIMIT_BYTES);
	return 0;
}

int certificates_refresh(struct certificates *c, CURL *easy, const char **ret_which)
{
	for (size_t i = 0; i < CERTIFICATES_FILES; i++) {
		int err = c->files[i].path ? refresh_file(&c->files[i], easy) : 0;

		if (err) {
			*ret_which = c->files[i].path;
			return err;
		}
	}
	return 0;
}

void certificates_explain(const struct certificates *c, CURLcode code, char *text, size_t size)
{
	const char *ca = c->files[CERTIFICATES_CA].path;
	const char *client = c->files[CERTIFICATES_CLIENT].path;
	const char *key = c->files[CERTIFICATES_KEY].path;

	if (code == CURLE_SSL_CACERT_BADFILE && ca)
		snprintf(text, size, "%s: no readable certificate in it", ca);
	else if (code == CURLE_SSL_CERTPROBLEM && client)
		snprintf(text, size, "%s and %s: no readable pair of certificate and key", client,
			key);
}
