/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/serve/serve.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/secret_file.h"

enum {
	RANDOM_BYTES = 24,
	TOKEN_BYTES = 2 * RANDOM_BYTES, /* in hexadecimal: nothing to escape in an address */
	DIRECTORY_MODE = 0700,
	FILE_MODE = 0600,
};

static const char FILE_NAME[] = "http-token";

static int token_read_given(
	const struct config *config, const char *path, char **ret_token, char **ret_message)
{
	int err = secret_file_read(path, SERVE_TOKEN_BYTES, ret_token);

	if (err == -E2BIG)
		return config_refuse(config, SETTING_http_token_file, ret_message,
			": %s: longer than %d characters", path, SERVE_TOKEN_BYTES);
	if (err)
		return config_refuse(config, SETTING_http_token_file, ret_message, ": %s: %s", path,
			secret_file_explain(err));
	return 0;
}

static int token_make(char **ret_token)
{
	unsigned char random[RANDOM_BYTES];
	char text[TOKEN_BYTES + 1];
	char *token;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	token = strdup(text);
	explicit_bzero(random, sizeof(random));
	explicit_bzero(text, sizeof(text));
	if (!token)
		return -ENOMEM;
	*ret_token = token;
	return 0;
}

/* Whether the file is ours alone: a token that others can read or choose protects nothing. */
static int token_check_file(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return -errno;
	return S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

static int token_read_own(const char *path, char **ret_token)
{
	int err = token_check_file(path);

	return err ? err : secret_file_read(path, SERVE_TOKEN_BYTES, ret_token);
}

static int token_keep(const char *directory, const char *path, const char *token)
{
	int err = io_make_directories(directory, DIRECTORY_MODE);

	return err ? err : io_replace_file(AT_FDCWD, path, token, strlen(token), FILE_MODE);
}

static int token_get_own(const char *directory, char **ret_token)
{
	autofree char *path = NULL;
	char *token = NULL;
	int err;

	if (asprintf(&path, "%s/%s", directory, FILE_NAME) < 0)
		return -ENOMEM;
	if (!token_read_own(path, ret_token))
		return 0;
	err = token_make(&token);
	if (err)
		return err;
	err = token_keep(directory, path, token);
	if (err)
		log_warn("the HTTP token cannot be kept: it is for this run only",
			"path=%s error=%s", path, strerror(-err));
	*ret_token = token;
	return 0;
}

int token_get(const struct config *config, const char *cache_directory, char **ret_token,
	char **ret_message)
{
	const char *path = config_text(config, SETTING_http_token_file);

	if (path && *path)
		return token_read_given(config, path, ret_token, ret_message);
	return token_get_own(cache_directory, ret_token);
}
