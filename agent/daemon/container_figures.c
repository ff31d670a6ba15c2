/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/container_figures.h"

#include "agent/daemon/daemon_internal.h"
#include "agent/daemon/exposition.h"

static struct metadata_figures container_figures_of(struct metadata *metadata)
{
	struct metadata_figures figures = { .count = 0 };

	if (metadata)
		metadata_figures(metadata, &figures);
	return figures;
}

void container_figures_write_metrics(struct metadata *metadata, struct buffer *out)
{
	const struct metadata_figures figures = container_figures_of(metadata);
	size_t containers = 0, pods = 0;

	for (size_t i = 0; i < figures.count; i++) {
		containers += figures.runtimes[i].containers;
		pods += figures.runtimes[i].pods;
	}
	exposition_family(out, "fathom_metadata_containers", EXPOSITION_GAUGE,
		"Containers that container runtimes tell of, with those of pods themselves");
	exposition_value(out, "fathom_metadata_containers", (double)containers, "%s", "");
	exposition_family(out, "fathom_metadata_pods", EXPOSITION_GAUGE,
		"Pods that container runtimes tell of");
	exposition_value(out, "fathom_metadata_pods", (double)pods, "%s", "");
	exposition_family(out, "fathom_kubernetes_pods", EXPOSITION_GAUGE,
		"Pods of this node that the Kubernetes API server tells of, if it is asked");
	exposition_value(out, "fathom_kubernetes_pods", (double)figures.api.pods, "%s", "");
}

void container_figures_write_status(struct metadata *metadata, struct json *j, const char *key)
{
	const struct metadata_figures figures = container_figures_of(metadata);

	json_array(j, key);
	for (size_t i = 0; i < figures.count; i++) {
		const struct metadata_runtime_figures *r = &figures.runtimes[i];

		json_object(j, NULL);
		daemon_json_text(j, "socket", r->socket);
		daemon_json_text(j, "runtime", r->name);
		json_bool(j, "ok", !*r->trouble);
		json_number(j, "containers", r->containers);
		json_number(j, "pods", r->pods);
		json_bool(j, "events", r->has_events);
		daemon_json_text(j, "error", r->trouble);
		json_close(j);
	}
	json_close(j);
}

void container_figures_write_api(struct metadata *metadata, struct json *j, const char *key)
{
	const struct metadata_figures figures = container_figures_of(metadata);
	const struct metadata_api_figures *api = &figures.api;

	if (!api->is_asked) {
		json_null(j, key);
		return;
	}
	json_object(j, key);
	daemon_json_text(j, "server", api->server);
	daemon_json_text(j, "node", api->node);
	json_bool(j, "ok", api->has_told && !*api->trouble);
	json_number(j, "pods", api->pods);
	json_number(j, "bytes", api->bytes);
	json_bool(j, "watching", api->is_watching);
	daemon_json_text(j, "error", api->trouble);
	json_close(j);
}
