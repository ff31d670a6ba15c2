/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/server/metadata/metadata_internal.h"
#include "base/cleanup.h"
#include "base/thread.h"

/*
 * Where runtimes listen by default. Kubernetes, k3s and RKE2, k0s, MicroK8s, CRI-O, Docker's shim;
 * Docker and podman. Those that know most of a container come first.
 */
static const struct known_socket {
	const char *path;
	const struct runtime_protocol *protocol;
} known_sockets[] = {
	{ "/run/containerd/containerd.sock", &cri_protocol },
	{ "/run/crio/crio.sock", &cri_protocol },
	{ "/run/k3s/containerd/containerd.sock", &cri_protocol },
	{ "/run/k0s/containerd.sock", &cri_protocol },
	{ "/var/snap/microk8s/common/run/containerd.sock", &cri_protocol },
	{ "/run/cri-dockerd.sock", &cri_protocol },
	{ "/run/docker.sock", &docker_protocol },
	{ "/run/podman/podman.sock", &docker_protocol },
};

_Static_assert(ARRAY_SIZE(known_sockets) <= METADATA_RUNTIMES, "known_sockets");

/* ---- making --------------------------------------------------------------------------------- */

/* Of a path that the user names, by the file's name; cri-dockerd.sock is no `docker`. */
static const struct runtime_protocol *metadata_protocol_of(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return strncmp(name, "docker", strlen("docker")) &&
			       strncmp(name, "podman", strlen("podman"))
		       ? &cri_protocol
		       : &docker_protocol;
}

static void metadata_add_runtimes(struct metadata *m)
{
	if (m->path) {
		runtime_init(&m->runtimes[m->count++], metadata_protocol_of(m->path), m->path,
			false, m->metrics);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known_sockets); i++)
		runtime_init(&m->runtimes[m->count++], known_sockets[i].protocol,
			known_sockets[i].path, true, m->metrics);
}

static int metadata_start(struct metadata *m)
{
	int err = thread_start(&m->thread, metadata_run, m);

	m->running = !err;
	return err;
}

static const char *metadata_socket_path(const char *socket)
{
	static const char scheme[] = "unix://";

	return socket + (strncmp(socket, scheme, strlen(scheme)) ? 0 : strlen(scheme));
}

bool metadata_socket_is_valid(const char *socket)
{
	const char *path = metadata_socket_path(socket);

	return *path == '/' && strlen(path) < RUNTIME_SOCKET_BYTES;
}

static int metadata_make(struct metadata *m, const struct metadata_options *o)
{
	if (o->socket && !metadata_socket_is_valid(o->socket))
		return -EINVAL;
	m->path = o->socket ? strdup(metadata_socket_path(o->socket)) : NULL;
	if (o->socket && !m->path)
		return -ENOMEM;
	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->wake_fd < 0)
		return -errno;
	metadata_add_runtimes(m);
	m->asks_api = o->api != NULL;
	if (o->api)
		api_server_init(&m->api, o->api, m->metrics);
	return metadata_start(m);
}

int metadata_create(const struct metadata_options *options, struct metrics *metrics,
	struct metadata **ret_metadata)
{
	struct metadata *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->lock, NULL);
	m->metrics = metrics;
	m->wake_fd = -1;
	m->waiting = true;
	err = metadata_make(m, options);
	if (err) {
		metadata_destroy(m);
		return err;
	}
	*ret_metadata = m;
	return 0;
}

static void metadata_wake(struct metadata *m)
{
	const uint64_t one = 1;

	(void)!write(m->wake_fd, &one, sizeof(one));
}

void metadata_destroy(struct metadata *m)
{
	if (!m)
		return;
	if (m->running) {
		pthread_mutex_lock(&m->lock);
		m->stopping = true;
		pthread_mutex_unlock(&m->lock);
		metadata_wake(m);
		pthread_join(m->thread, NULL);
	}
	for (size_t i = 0; i < m->count; i++) {
		runtime_deinit(&m->runtimes[i]);
		containers_unref(m->tables[i]);
	}
	if (m->asks_api)
		api_server_deinit(&m->api);
	joined_unref(m->joined);
	if (m->multi)
		curl_multi_cleanup(m->multi);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	pthread_mutex_destroy(&m->lock);
	free(m->path);
	free(m);
}

void metadata_ask(struct metadata *m)
{
	pthread_mutex_lock(&m->lock);
	m->asked = true;
	pthread_mutex_unlock(&m->lock);
	metadata_wake(m);
}

/* ---- reading -------------------------------------------------------------------------------- */

void metadata_view_init(struct metadata_view *view, struct metadata *m)
{
	*view = (struct metadata_view){ 0 };
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	view->waiting = m->waiting;
	for (size_t i = 0; i < METADATA_RUNTIMES; i++) {
		if (m->tables[i])
			view->tables[view->count++] = containers_ref(m->tables[i]);
	}
	view->joined = m->joined ? joined_ref(m->joined) : NULL;
	pthread_mutex_unlock(&m->lock);
}

void metadata_figures(struct metadata *m, struct metadata_figures *ret_figures)
{
	pthread_mutex_lock(&m->lock);
	*ret_figures = m->figures;
	pthread_mutex_unlock(&m->lock);
}
