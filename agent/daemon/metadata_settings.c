/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/metadata_settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/server/metadata/kubernetes/api_server.h"

enum { HOST_BYTES = 256 };

/* https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
static const char account_directory[] = "/var/run/secrets/kubernetes.io/serviceaccount";

static bool metadata_settings_asks_nobody(const struct config *config)
{
	const char *socket = config_text(config, SETTING_container_runtime_socket);

	return socket && !*socket;
}

int metadata_settings_check(const struct config *config, char **ret_message)
{
	const char *socket = config_text(config, SETTING_container_runtime_socket);

	if (socket && *socket && !metadata_socket_is_valid(socket))
		return config_refuse(config, SETTING_container_runtime_socket, ret_message,
			" must be an absolute path of less than 108 bytes");
	if (metadata_settings_asks_nobody(config) && config_flag(config, SETTING_kubernetes_api))
		return config_refuse(config, SETTING_kubernetes_api, ret_message,
			" needs a container runtime, which says what container is in which pod");
	return 0;
}

static int metadata_settings_access(
	const struct config *config, struct api_access *access, char **ret_message)
{
	const char *node = config_text(config, SETTING_node);
	const char *directory = config_text(config, SETTING_test_service_account);
	char host[HOST_BYTES] = "";
	int err;

	if (!node || !*node)
		(void)gethostname(host, sizeof(host) - 1);
	err = api_access_init(
		access, directory ? directory : account_directory, node && *node ? node : host);
	if (!err)
		return 0;
	return config_refuse(config, SETTING_kubernetes_api, ret_message, " %s",
		err == -ENOENT ? "works in a pod only: KUBERNETES_SERVICE_HOST and "
				 "KUBERNETES_SERVICE_PORT are not set"
		: err == -EDOM ? "wants --node to be the name of this node in the cluster"
			       : "cannot use KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT: "
				 "they are no address");
}

int metadata_settings_create(const struct config *config, struct metrics *metrics,
	struct metadata **ret_metadata, char **ret_message)
{
	struct metadata_options options = {
		.socket = config_text(config, SETTING_container_runtime_socket),
	};
	struct api_access access;
	int err = 0;

	*ret_metadata = NULL;
	if (metadata_settings_asks_nobody(config))
		return 0;
	if (config_flag(config, SETTING_kubernetes_api)) {
		err = metadata_settings_access(config, &access, ret_message);
		options.api = &access;
	}
	if (!err)
		err = metadata_create(&options, metrics, ret_metadata);
	if (err && !*ret_message &&
		asprintf(ret_message, "container runtimes cannot be asked: %s", strerror(-err)) < 0)
		*ret_message = NULL;
	return err;
}

static bool metadata_settings_is_other(
	const struct config *old, const struct config *new, enum setting id)
{
	const char *a = config_text(old, id), *b = config_text(new, id);

	/* An empty socket is not the same as none. */
	return (a != NULL) != (b != NULL) || (a && strcmp(a, b) != 0);
}

bool metadata_settings_differ(const struct config *old, const struct config *new)
{
	const bool asks_api = config_flag(new, SETTING_kubernetes_api);

	return asks_api != config_flag(old, SETTING_kubernetes_api) ||
	       metadata_settings_is_other(old, new, SETTING_container_runtime_socket) ||
	       (asks_api && metadata_settings_is_other(old, new, SETTING_node));
}
