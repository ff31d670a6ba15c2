/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/remote_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/items.h"

enum { MAX_HEADERS = 32, TYPES_BYTES = 256 };

static int parse_type(const struct config *config, enum remote_type *ret_type, char **ret_message)
{
	const char *text = config_text(config, SETTING_remote_store_type);
	char types[TYPES_BYTES];

	if (text && !remote_type_find(text, ret_type))
		return 0;
	remote_type_list(types, sizeof(types));
	return config_refuse(config, SETTING_remote_store_type, ret_message, "%s%s: must be %s",
		text ? ": " : "", text ? text : "", types);
}

static int parse_way(const struct config *config, enum remote_way *ret_way, char **ret_message)
{
	const char *text = config_text(config, SETTING_remote_store_otlp_protocol);

	if (!text || !*text)
		*ret_way = REMOTE_WAY_ANY;
	else if (!strcmp(text, "grpc"))
		*ret_way = REMOTE_WAY_GRPC;
	else if (!strcmp(text, "http"))
		*ret_way = REMOTE_WAY_HTTP;
	else
		return config_refuse(config, SETTING_remote_store_otlp_protocol, ret_message,
			": %s: must be grpc or http", text);
	return 0;
}

/* Future servers may refuse or misread what is sent today. */
static int check_unstable(const struct config *config, enum remote_type type, char **ret_message)
{
	if (!remote_type_has(type, REMOTE_UNSTABLE) ||
		config_flag(config, SETTING_remote_store_otlp_unstable))
		return 0;
	return config_refuse(config, SETTING_remote_store_type, ret_message,
		": otlp: the format of profiles in OTLP is not stable yet; %s accepts that",
		config->line ? "otlp-unstable: true"
			     : config_name(SETTING_remote_store_otlp_unstable));
}

static char *trimmed(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && strchr(" \t", text[length - 1]))
		text[--length] = 0;
	return text;
}

static int parse_labels(const struct config *config, struct labels *labels, char **ret_message)
{
	const char *text = config_text(config, SETTING_external_labels);
	autofree char *copy = strdup(text ? text : "");
	char *next = copy, *item;

	if (!copy)
		return -ENOMEM;
	while ((item = items_next(&next, ",;")) != NULL) {
		char *value = strchr(item, '=');
		int err;

		if (!*trimmed(item))
			continue;
		if (!value)
			return config_refuse(config, SETTING_external_labels, ret_message,
				": %s: must be NAME=VALUE", item);
		*value++ = 0;
		err = labels_set(labels, trimmed(item), trimmed(value));
		if (err == -ENOMEM)
			return err;
		if (err)
			return config_refuse(config, SETTING_external_labels, ret_message,
				": %s: %s", item,
				err == -E2BIG ? "too many labels, or too long"
					      : "not a label's name");
	}
	return 0;
}

static int add_header(
	const struct config *config, struct remote_settings *s, char *item, char **ret_message)
{
	const enum setting id = SETTING_remote_store_headers;
	char *value = item + strcspn(item, ":="), *name;

	if (!*value)
		/* The item is not shown: it may be part of a secret. */
		return config_refuse(config, id, ret_message, ": must be NAME=VALUE");
	*value++ = 0;
	name = trimmed(item);
	if (s->options.header_count == MAX_HEADERS)
		return config_refuse(config, id, ret_message, ": %s: too many headers", name);
	if (asprintf(&s->headers[s->options.header_count], "%s: %s", name, trimmed(value)) < 0)
		return -ENOMEM;
	s->options.header_count++;
	return 0;
}

static int parse_headers(const struct config *config, struct remote_settings *s, char **ret_message)
{
	const char *text = config_text(config, SETTING_remote_store_headers);
	autofree char *copy = strdup(text ? text : "");
	char *next = copy, *item;
	int err = 0;

	s->headers = calloc(MAX_HEADERS, sizeof(*s->headers));
	if (!copy || !s->headers)
		return -ENOMEM;
	while (!err && (item = items_next(&next, ",")) != NULL) {
		if (*trimmed(item))
			err = add_header(config, s, item, ret_message);
	}
	s->options.headers = (const char *const *)s->headers;
	return err;
}

static const char *given(const struct config *config, enum setting id)
{
	const char *text = config_text(config, id);

	return text && *text ? text : NULL;
}

static void borrow_texts(const struct config *config, struct remote_options *o)
{
	o->address = given(config, SETTING_remote_store_address);
	o->given_name = given(config, SETTING_remote_store_name);
	o->bearer_token = given(config, SETTING_remote_store_bearer_token);
	o->bearer_token_file = given(config, SETTING_remote_store_bearer_token_file);
	o->basic_auth_user = given(config, SETTING_remote_store_basic_auth_user);
	o->basic_auth_password_file = given(config, SETTING_remote_store_basic_auth_password_file);
	o->ca_file = given(config, SETTING_remote_store_ca_file);
	o->client_cert = given(config, SETTING_remote_store_client_cert);
	o->client_key = given(config, SETTING_remote_store_client_key);
	o->server_name = given(config, SETTING_remote_store_server_name);
	o->tenant_id = given(config, SETTING_remote_store_tenant_id);
	o->proxy_url = given(config, SETTING_remote_store_proxy_url);
	o->insecure = config_flag(config, SETTING_remote_store_insecure);
	o->insecure_skip_verify = config_flag(config, SETTING_remote_store_insecure_skip_verify);
}

/* The place for errors found only when the store is created. */
static int remote_settings_name_place(const struct config *config, struct remote_settings *s)
{
	if (config->line &&
		asprintf(&s->place, "%s:%u: remote-stores", config->file, config->line) < 0) {
		s->place = NULL;
		return -ENOMEM;
	}
	s->options.place = s->place;
	return 0;
}

static int remote_settings_fill(
	const struct config *config, struct remote_settings *s, char **ret_message)
{
	int err = parse_labels(config, &s->external, ret_message);

	if (err)
		return err;
	borrow_texts(config, &s->options);
	s->options.name = given(config, SETTING_remote_store_type);
	if (!s->options.name && !s->options.address)
		return -ENOENT;
	err = remote_settings_name_place(config, s);
	if (!err)
		err = parse_type(config, &s->options.type, ret_message);
	if (!err)
		err = check_unstable(config, s->options.type, ret_message);
	if (!err)
		err = parse_way(config, &s->options.way, ret_message);
	if (err)
		return err;
	if (!s->options.address)
		return config_refuse(
			config, SETTING_remote_store_address, ret_message, ": is missing");
	return parse_headers(config, s, ret_message);
}

int remote_options_from_config(
	const struct config *config, struct remote_settings *ret_settings, char **ret_message)
{
	struct remote_settings settings = { 0 };
	int err;

	*ret_message = NULL;
	err = remote_settings_fill(config, &settings, ret_message);
	if (err && err != -ENOENT) {
		remote_settings_deinit(&settings);
		return err;
	}
	*ret_settings = settings;
	return err;
}

void remote_settings_deinit(struct remote_settings *settings)
{
	for (size_t i = 0; i < settings->options.header_count; i++)
		free(settings->headers[i]);
	free(settings->headers);
	free(settings->place);
	labels_deinit(&settings->external);
	*settings = (struct remote_settings){ 0 };
}
