/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "agent/sampler/process/cgroup_paths.h"
#include "agent/sampler/process/proc_reader.h"
#include "base/cleanup.h"
#include "tests/unit/fake_proc.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
#define SLICE_POD "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0"

/* All hierarchies of cgroup v1, as a kernel lists them: the last one mounted first. */
#define V1(path)                                                                                \
	"12:rdma:" path "\n11:perf_event:" path "\n10:freezer:" path "\n9:devices:" path        \
	"\n8:net_cls,net_prio:" path "\n7:blkio:" path "\n6:pids:" path "\n5:memory:" path      \
	"\n4:hugetlb:" path "\n3:cpuset:" path "\n2:cpu,cpuacct:" path "\n1:name=systemd:" path \
	"\n"

enum { PID = 42 };

struct text_case {
	const char *text, *id, *pod;
	bool unified;
};

static const struct text_case cases[] = {
	/* containerd, Docker and podman with the cgroupfs driver, CRI-O with systemd's; v1 alone */
	{ V1("/kubepods/besteffort/pod" POD "/" ID), ID, POD, false },
	{ V1("/docker/" ID), ID, "", false },
	{ V1("/libpod_parent/libpod-" ID), ID, "", false },
	{ V1("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" SLICE_POD
	     ".slice/crio-" ID ".scope"),
		ID, POD, false },
	/* v1 and v2: v2 has the container as well, its service, or nothing */
	{ V1("/kubepods.slice/kubepods-pod" SLICE_POD ".slice/cri-containerd-" ID
	     ".scope") "0::/kubepods.slice/kubepods-pod" SLICE_POD ".slice/cri-containerd-" ID
		       ".scope\n",
		ID, POD, false },
	{ V1("/kubepods/pod" POD "/" ID) "0::/system.slice/containerd.service\n", ID, POD, false },
	{ V1("/docker/" ID) "0::/\n", ID, "", false },
	/* runc's cgroupfs driver is given systemd's form */
	{ V1("/system.slice/containerd.service/kubepods-besteffort-pod" SLICE_POD
	     ".slice:cri-containerd:" ID),
		ID, POD, false },
	/* controllers that the container does not have are at the root, or at its parent */
	{ "3:rdma:/\n2:misc:/kubepods\n1:memory:/kubepods/pod" POD "/" ID "\n", ID, POD, false },
	/* a pod of a kind node and of a minikube node, which are containers of Docker; podman's */
	{ V1("/docker/" ID "/kubelet/kubepods/besteffort/pod" POD "/" OTHER), ID "/" OTHER, "",
		false },
	{ V1("/system.slice/docker-" ID ".scope/kubelet.slice/kubelet-kubepods.slice/"
	     "kubelet-kubepods-pod" SLICE_POD ".slice/cri-containerd-" OTHER ".scope"),
		ID "/" OTHER, "", false },
	{ V1("/docker/" ID "/kubepods/burstable/pod" POD "/" OTHER) "0::/docker/" ID "\n",
		ID "/" OTHER, "", false },
	{ "0::/machine.slice/libpod-" ID ".scope/container/kubelet.slice/kubelet-kubepods.slice/"
	  "kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" SLICE_POD
	  ".slice/cri-containerd-" OTHER ".scope\n",
		ID "/" OTHER, "", true },
	/* v2 alone */
	{ "0::/kubepods/burstable/pod" POD "/" ID "\n", ID, POD, true },
	/* No container: a service, a session, and a service that names its own group */
	{ V1("/system.slice/ssh.service") "0::/system.slice/ssh.service\n", "", "", false },
	{ "2:memory:/\n1:name=systemd:/user.slice/user-1000.slice/session-1.scope\n", "", "",
		false },
	{ "2:memory:/system.slice/web.service\n1:name=systemd:/system.slice/web.service/docker-" ID
	  ".scope\n0::/system.slice/web.service\n",
		"", "", false },
	{ "0::/\n", "", "", true },
};

static void containers_of_whole_files(void **state)
{
	struct fake_proc proc;
	int fd;

	(void)state;
	fake_proc_init(&proc);
	fake_proc_process(&proc, PID, &(struct fake_process){ .comm = "x", .maps = "" });
	assert_int_equal(proc_open(proc.fd, PID, &fd), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char id[CONTAINER_ID_BYTES] = "#", pod[POD_UID_BYTES] = "#";
		struct cgroup_paths *paths;

		fake_proc_write(&proc, PID, "cgroup", cases[i].text);
		assert_int_equal(proc_read_cgroups(fd, id, pod, &paths), 0);
		if (strcmp(id, cases[i].id) != 0 || strcmp(pod, cases[i].pod) != 0 ||
			cgroup_paths_are_unified(paths) != cases[i].unified)
			fail_msg("%s: %s, pod %s", cases[i].text, id, pod);
		cgroup_paths_unref(paths);
	}
	close(fd);
	fake_proc_deinit(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_of_whole_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
