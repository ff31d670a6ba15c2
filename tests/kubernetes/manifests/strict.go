// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Kinds that are not Kubernetes' own; their schemas are their operators'.
var foreign = map[string]bool{
	"monitoring.coreos.com/v1 PodMonitor":                 true,
	"monitoring.coreos.com/v1 PrometheusRule":             true,
	"security.openshift.io/v1 SecurityContextConstraints": true,
}

func emptyObject(kind string) any {
	switch kind {
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "v1 Namespace":
		return &corev1.Namespace{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return &rbacv1.ClusterRole{}
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "scheduling.k8s.io/v1 PriorityClass":
		return &schedulingv1.PriorityClass{}
	}
	return nil
}

func checkFields(document []byte, kind string) error {
	if foreign[kind] {
		return nil
	}
	object := emptyObject(kind)
	if object == nil {
		return fmt.Errorf("%s: a kind that this test does not know", kind)
	}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// The documents of TEXT as plain values, each of which CHECK accepts.
func objectsOf(text string, check func(document []byte, kind string) error) ([]map[string]any, error) {
	var objects []map[string]any
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(asJSON, []byte("null")) {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal(asJSON, &object); err != nil {
			return nil, err
		}
		if err := check(document, fmt.Sprint(object["apiVersion"], " ", object["kind"])); err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
