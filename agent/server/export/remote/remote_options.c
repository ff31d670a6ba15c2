/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"

static int remote_options_refuse(char **ret_message, const char *what, const char *why)
{
	if (asprintf(ret_message, "%s%s%s", what, *what ? ": " : "", why) < 0)
		*ret_message = NULL;
	return -EINVAL;
}

static int check_credentials(const struct remote_options *o, char **ret_message)
{
	if (o->bearer_token && o->bearer_token_file)
		return remote_options_refuse(ret_message, "",
			"a bearer token and a bearer token file exclude each other");
	if ((o->bearer_token || o->bearer_token_file) && o->basic_auth_user)
		return remote_options_refuse(ret_message, "",
			"a bearer token and basic authentication exclude each other");
	if (!o->basic_auth_user != !o->basic_auth_password_file)
		return remote_options_refuse(
			ret_message, "", "basic authentication needs a user and a password file");
	if (o->basic_auth_user && strchr(o->basic_auth_user, ':'))
		return remote_options_refuse(ret_message, "",
			"the user name for basic authentication must not contain ':'");
	return 0;
}

static bool is_token(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	}
	return length > 0;
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if (iscntrl((unsigned char)*text))
			return true;
	}
	return false;
}

/* Headers that follow from the protocol or from other options. */
static bool is_reserved(const char *header, size_t length)
{
	static const char *const reserved[] = { "Host", "Content-Type", "Content-Length",
		"Content-Encoding", "Transfer-Encoding", "TE", "Connection", "Expect" };

	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
		if (strlen(reserved[i]) == length && !strncasecmp(header, reserved[i], length))
			return true;
	}
	return false;
}

/* Messages do not show values: they may be secrets. */
static int check_headers(const struct remote_options *o, char **ret_message)
{
	if (o->header_count > REMOTE_MAX_HEADERS)
		return remote_options_refuse(ret_message, "headers", "too many");
	for (size_t i = 0; i < o->header_count; i++) {
		const char *header = o->headers[i];
		size_t length = strcspn(header, ":");

		if (!header[length] || !is_token(header, length) || has_control(header))
			return remote_options_refuse(
				ret_message, "headers", "each must be NAME: VALUE");
		if (strlen(header) > REMOTE_HEADER_BYTES)
			return remote_options_refuse(ret_message, "headers", "one is too long");
		if (is_reserved(header, length))
			return remote_options_refuse(ret_message, "headers",
				"Host, Content-… and Transfer-… cannot be set");
	}
	if (o->bearer_token && (has_control(o->bearer_token) || !*o->bearer_token))
		return remote_options_refuse(
			ret_message, "", "the bearer token is not a valid header value");
	if (o->tenant_id && has_control(o->tenant_id))
		return remote_options_refuse(
			ret_message, "", "the tenant ID is not a valid header value");
	return 0;
}

static int check_file(const char *what, const char *path, char **ret_message)
{
	char text[512];

	if (!path || !access(path, R_OK))
		return 0;
	snprintf(text, sizeof(text), "%s %s", what, path);
	return remote_options_refuse(ret_message, text, strerror(errno));
}

static int check_tls(const struct remote_options *o, bool tls, char **ret_message)
{
	int err;

	if (!tls && (o->ca_file || o->client_cert || o->client_key || o->server_name))
		return remote_options_refuse(ret_message, "",
			"certificates have no effect without TLS: use https:// or remove them");
	if (o->client_key && !o->client_cert)
		return remote_options_refuse(
			ret_message, "", "a client key without its certificate");
	if (o->server_name && (!*o->server_name || strpbrk(o->server_name, ":/?#@[] ")))
		return remote_options_refuse(ret_message, o->server_name, "is not a host name");
	err = check_file("CA file", o->ca_file, ret_message);
	if (!err)
		err = check_file("client certificate", o->client_cert, ret_message);
	return err ? err : check_file("client key", o->client_key, ret_message);
}

static void cleanup_curl_url(CURLU **url)
{
	curl_url_cleanup(*url);
}

static void remote_options_cleanup_curl_text(char **text)
{
	curl_free(*text);
}

static bool has_part(CURLU *url, CURLUPart part)
{
	autocall(remote_options_cleanup_curl_text) char *text = NULL;

	return curl_url_get(url, part, &text, 0) == CURLUE_OK && *text;
}

static int check_url(CURLU *url, char **ret_message)
{
	autocall(remote_options_cleanup_curl_text) char *scheme = NULL;

	if (curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
		(strcmp(scheme, "http") && strcmp(scheme, "https")))
		return remote_options_refuse(ret_message, "address",
			"must have the scheme http:// or https://, or none");
	if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
		return remote_options_refuse(ret_message, "address",
			"must not contain a user or password: there are options for basic "
			"authentication");
	if (has_part(url, CURLUPART_QUERY) || has_part(url, CURLUPART_FRAGMENT))
		return remote_options_refuse(ret_message, "address", "must not have a ? or # part");
	return 0;
}

static int remote_options_parse_address(
	const struct remote_options *o, char url_text[REMOTE_URL_BYTES], char **ret_message)
{
	autocall(remote_options_cleanup_curl_text) char *whole = NULL;
	autocall(cleanup_curl_url) CURLU *url = curl_url();
	autofree char *given = NULL;
	size_t length;
	int err;

	if (!url || asprintf(&given, "%s%s",
			    strstr(o->address, "://") ? ""
			    : o->insecure             ? "http://"
						      : "https://",
			    o->address) < 0)
		return -ENOMEM;
	if (curl_url_set(url, CURLUPART_URL, given, 0) != CURLUE_OK)
		return remote_options_refuse(ret_message, "address", "must be HOST:PORT or a URL");
	err = check_url(url, ret_message);
	if (err)
		return err;
	if (curl_url_get(url, CURLUPART_URL, &whole, CURLU_DEFAULT_PORT) != CURLUE_OK)
		return remote_options_refuse(ret_message, "address", "must be HOST:PORT or a URL");
	length = strlen(whole);
	while (length && whole[length - 1] == '/')
		length--;
	/* Protocols append their path and query. */
	if (length >= REMOTE_URL_BYTES / 2)
		return remote_options_refuse(ret_message, "address", "is too long");
	memcpy(url_text, whole, length);
	url_text[length] = 0;
	return 0;
}

int remote_options_check(
	const struct remote_options *o, char url[REMOTE_URL_BYTES], char **ret_message)
{
	char text[REMOTE_URL_BYTES];
	int err;

	if (!o->address || !*o->address)
		return remote_options_refuse(ret_message, "address", "is missing");
	if (remote_type_has(o->type, REMOTE_IS_DIRECTORY)) {
		if (strlen(o->address) >= REMOTE_URL_BYTES)
			return remote_options_refuse(ret_message, "address", "is too long");
		snprintf(url, REMOTE_URL_BYTES, "%s", o->address);
		return 0;
	}
	err = remote_options_parse_address(o, text, ret_message);
	if (!err)
		err = check_credentials(o, ret_message);
	if (!err)
		err = check_headers(o, ret_message);
	if (!err)
		err = check_tls(o, !strncmp(text, "https:", 6), ret_message);
	if (!err)
		memcpy(url, text, REMOTE_URL_BYTES);
	return err;
}
