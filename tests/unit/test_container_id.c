/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "agent/sampler/process/container_id.h"
#include "base/array.h"
#include "base/cleanup.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

struct container_case {
	const char *line, *id; /* ID NULL = none */
};

static void assert_cases(const struct container_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* A write of one byte too many would be detected. */
		char id[CONTAINER_ID_BYTES + 1];
		bool found;

		memset(id, '#', sizeof(id));
		found = container_id_of_line(cases[i].line, strlen(cases[i].line), id);
		if (found != (cases[i].id != NULL) || (found && strcmp(id, cases[i].id) != 0))
			fail_msg("%s: %s", cases[i].line, found ? id : "none");
		assert_int_equal(id[CONTAINER_ID_BYTES], '#');
		if (!found)
			assert_int_equal(id[0], '#');
	}
}

static void containers_of_each_runtime(void **state)
{
	static const struct container_case cases[] = {
		/* Docker: cgroupfs, systemd */
		{ "12:cpu:/docker/" ID, ID },
		{ "0::/system.slice/docker-" ID ".scope", ID },
		{ "1:name=systemd:/system.slice/docker-" ID ".scope", ID },
		{ "0::/system.slice/docker.service/docker/" ID, ID },
		{ "0::/own.slice/own-parent.slice/docker-" ID ".scope", ID },
		/* Kubernetes: containerd, CRI-O, Docker; both drivers, all classes of service */
		{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1b.slice/"
		  "cri-containerd-" ID ".scope",
			ID },
		{ "0::/kubepods/besteffort/pod0a1b-22/" ID, ID },
		{ "0::/kubepods/pod0a1b/" ID, ID },
		{ "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", ID },
		{ "0::/kubepods.slice/kubepods-pod1.slice/docker-" ID ".scope", ID },
		{ "4:memory:/system.slice/containerd.service/kubepods-burstable-pod1.slice:"
		  "cri-containerd:" ID,
			ID },
		{ "0::/system.slice/k3s.service/kubepods/burstable/pod1/" ID, ID },
		{ "0::/system.slice/snap.microk8s.daemon-containerd.service/kubepods/pod1/" ID,
			ID },
		{ "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/"
		  "cri-containerd-" ID ".scope",
			ID },
		/* podman, nerdctl */
		{ "0::/machine.slice/libpod-" ID ".scope/container", ID },
		{ "0::/libpod_parent/libpod-" ID, ID },
		{ "0::/system.slice/nerdctl-" ID ".scope", ID },
		{ "0::/default/" ID, ID },
		/* pods of podman, both drivers; cgroup v1 */
		{ "0::/machine.slice/machine-libpod_pod_" OTHER ".slice/libpod-" ID
		  ".scope/container",
			ID },
		{ "0::/libpod_parent/" OTHER "/libpod-" ID, ID },
		{ "5:cpu,cpuacct:/libpod_parent/" OTHER "/libpod-" ID, ID },
		/* CRI-O: cgroupfs; crun's own cgroup below the container's */
		{ "0::/kubepods/burstable/pod6fe5e9a3-8f0e-4d6b-a5a8-6f4b1d2a9c11/crio-" ID, ID },
		{ "0::/kubepods.slice/kubepods-pod6fe5e9a3_8f0e_4d6b_a5a8_6f4b1d2a9c11.slice/"
		  "crio-" ID ".scope/container",
			ID },
		/* a static pod's UID is a hash */
		{ "0::/kubepods/besteffort/pode1bf0a2f2c1f0f0f3b6c2f2f1f0c1a2b/" ID, ID },
		/* seen from a cgroup namespace of our own */
		{ "0::/../../docker-" ID ".scope/init.scope", ID },
		{ "0::/../../pod0a1b/" ID, ID },
		{ "0::/../../../kubepods-besteffort.slice/kubepods-besteffort-pod1.slice/"
		  "cri-containerd-" ID ".scope",
			ID },
	};

	(void)state;
	assert_cases(cases, ARRAY_SIZE(cases));
}

static void paths_that_are_not_containers(void **state)
{
	static const struct container_case cases[] = {
		{ "", NULL },
		{ "0", NULL },
		{ "0:", NULL },
		{ "0::", NULL },
		{ "0::/", NULL },
		{ "0:/docker/" ID, NULL },
		{ ID, NULL },
		{ "0::/system.slice/ssh.service", NULL },
		{ "0::/docker/" ID "0", NULL },
		{ "0::/docker/123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			NULL },
		{ "0::/docker/G123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			NULL },
		{ "0::/docker/A123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF",
			NULL },
		/* the monitors of podman and CRI-O */
		{ "0::/machine.slice/libpod-conmon-" ID ".scope", NULL },
		{ "0::/system.slice/crio-conmon-" ID ".scope", NULL },
		{ "0::/kubepods/burstable/pod0a1b", NULL },
	};

	(void)state;
	assert_cases(cases, ARRAY_SIZE(cases));
}

/* The owner of a cgroup chooses the names below it. */
static void names_below_cgroups_not_owned_by_root_are_ignored(void **state)
{
	static const struct container_case cases[] = {
		{ "0::/x-docker-" ID ".scope", NULL },
		{ "0::/system.slice/x-docker-" ID ".scope", NULL },
		{ "0::/anything/docker-" ID ".scope", NULL },
		{ "0::/system.slice/web.service/docker-" ID ".scope", NULL },
		{ "0::/system.slice/web.service/kubepods.slice/cri-containerd-" ID ".scope", NULL },
		{ "0::/system.slice/docker.services/docker/" ID, NULL },
		{ "0::/system.slice/my-docker.service/docker/" ID, NULL },
		{ "0::/init.scope/docker-" ID ".scope", NULL },
		{ "0::/user.slice/docker-" ID ".scope", NULL },
		{ "0::/user.slice", NULL },
		{ "0::/user.slice/user-.slice/docker-" ID ".scope", NULL },
		{ "0::/user.slice/user-12345678901.slice/docker-" ID ".scope", NULL },
		{ "0::/user.slice/user-1x.slice/docker-" ID ".scope", NULL },
		{ "0::/user-1000.slice/docker-" ID ".scope", NULL },
		{ "0::/users.slice/docker-" ID ".scope", NULL },
		{ "0::/pod/" ID, NULL },
		{ "0::/system.slice/podcast.service/docker-" ID ".scope", NULL },
		{ "0::/system.slice/podman.service/libpod-" ID, NULL },
		{ "0::/system.slice/pod.scope/" ID, NULL },
		{ "0::/system.slice/kubepods.service/cri-containerd-" ID ".scope", NULL },
		{ "0::/system.slice/kubepods-x.scope/kubepods.slice:cri-containerd:" ID, NULL },
		{ "0::/libpod_parent/" OTHER, NULL },
	};

	(void)state;
	assert_cases(cases, ARRAY_SIZE(cases));
}

static void names_given_by_users_are_marked(void **state)
{
	static const struct container_case cases[] = {
		{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		  ".scope/container",
			"user-1000/" ID },
		{ "0::/user.slice/user-0.slice/session-1.scope/docker/" ID, "user-0/" ID },
		{ "0::/user.slice/user-4294967295.slice/" ID "/" OTHER,
			"user-4294967295/" ID "/" OTHER },
	};

	(void)state;
	assert_cases(cases, ARRAY_SIZE(cases));
}

/* A container's own names cannot imitate another container. */
static void names_given_by_a_container_stay_its_own(void **state)
{
	static const struct container_case cases[] = {
		{ "0::/docker/" ID "/" OTHER, ID "/" OTHER },
		{ "0::/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" OTHER
		  ".scope",
			ID "/" OTHER },
		{ "0::/docker/" ID "/anything/docker-" OTHER ".scope/x", ID "/" OTHER },
		{ "0::/docker/" ID "/" OTHER "/" ID, ID "/" ID },
		/* a pod in a node that is a container: kind and minikube, by what made the node */
		{ "0::/system.slice/docker-" ID ".scope/kubelet.slice/kubelet-kubepods.slice/"
		  "kubelet-kubepods-pod1.slice/cri-containerd-" OTHER ".scope",
			ID "/" OTHER },
		{ "4:memory:/docker/" ID "/kubelet/kubepods/burstable/pod1/" OTHER, ID "/" OTHER },
		{ "0::/machine.slice/libpod-" ID
		  ".scope/container/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" OTHER
		  ".scope",
			ID "/" OTHER },
		/* a container in a pod makes a cgroup that is named like another pod's */
		{ "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID
		  ".scope/kubepods.slice/kubepods-pod2.slice/cri-containerd-" OTHER ".scope",
			ID "/" OTHER },
		{ "0::/kubepods/burstable/pod1/" ID "/../pod2/" OTHER, ID "/" OTHER },
		{ "0::/../../pod1/" ID "/../../pod2/" OTHER, ID "/" OTHER },
		{ "0::/docker/" ID "/libpod-conmon-" OTHER ".scope", ID },
		{ "0::/docker/" ID "/init.scope", ID },
	};

	(void)state;
	assert_cases(cases, ARRAY_SIZE(cases));
}

/* The line need not be NUL-terminated. */
static void nothing_is_read_beyond_the_line(void **state)
{
	static const char line[] = "0::/docker/" ID;
	char id[CONTAINER_ID_BYTES];

	(void)state;
	for (size_t length = 0; length < sizeof(line) - 1; length++)
		assert_false(container_id_of_line(line, length, id));
	assert_true(container_id_of_line(line, sizeof(line) - 1, id));
}

static void the_pods_uid_is_in_the_path(void **state)
{
#define UID "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define SLICE_UID "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"
#define HASH "0123456789abcdef0123456789abcdef"
	static const struct container_case cases[] = {
		{ "0::/kubepods/burstable/pod" UID "/" ID, UID },
		{ "4:cpu:/kubepods/pod" HASH "/" ID, HASH },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" SLICE_UID
		  ".slice/cri-containerd-" ID ".scope",
			UID },
		{ "0::/kubepods.slice/kubepods-pod" HASH ".slice/crio-" ID ".scope", HASH },
		{ "0::/system.slice/containerd.service/kubepods-besteffort-pod" SLICE_UID
		  ".slice:cri-containerd:" ID,
			UID },
		{ "0::/../../kubepods-pod" SLICE_UID ".slice/cri-containerd-" ID ".scope", UID },
		/* A container chooses what is below it. */
		{ "0::/docker/" ID "/kubepods/pod" UID "/" ID, NULL },
		{ "0::/kubepods/pod" HASH "/" ID "/kubepods/pod" UID "/" ID, HASH },
		/* Not told, or no UID */
		{ "0::/system.slice/docker-" ID ".scope", NULL },
		{ "0::/../cri-containerd-" ID ".scope", NULL },
		{ "0::/kubepods/pod" UID "0/" ID, NULL },
		{ "0::/kubepods/pod12/" ID, NULL },
		{ "0::/kubepods/podG" UID "/" ID, NULL },
		{ "0::/kubepods/pod" UID, NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char uid[POD_UID_BYTES] = "#";
		bool found = container_pod_uid_of_line(cases[i].line, strlen(cases[i].line), uid);

		if (found != (cases[i].id != NULL) ||
			strcmp(uid, cases[i].id ? cases[i].id : "#") != 0)
			fail_msg("%s: %s", cases[i].line, uid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_of_each_runtime),
		cmocka_unit_test(paths_that_are_not_containers),
		cmocka_unit_test(names_below_cgroups_not_owned_by_root_are_ignored),
		cmocka_unit_test(names_given_by_users_are_marked),
		cmocka_unit_test(names_given_by_a_container_stay_its_own),
		cmocka_unit_test(the_pods_uid_is_in_the_path),
		cmocka_unit_test(nothing_is_read_beyond_the_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
