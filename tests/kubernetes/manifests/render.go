// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func kustomize(path string) (string, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		return "", err
	}
	text, err := resources.AsYaml()
	return string(text), err
}

// What `helm template fathom CHART -n fathom --kube-version VERSION -f VALUES` prints, files in order.
func helm(path, valuesPath, version string) (string, error) {
	chart, err := loader.Load(path)
	if err != nil {
		return "", err
	}
	values, err := chartutil.ReadValuesFile(valuesPath)
	if err != nil {
		return "", err
	}
	release := chartutil.ReleaseOptions{Name: "fathom", Namespace: "fathom", Revision: 1, IsInstall: true}
	cluster := *chartutil.DefaultCapabilities
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return "", err
	}
	cluster.KubeVersion = *parsed
	all, err := chartutil.ToRenderValues(chart, values, release, &cluster)
	if err != nil {
		return "", err
	}
	strict := engine.Engine{Strict: true}
	files, err := strict.Render(chart, all)
	if err != nil {
		return "", err
	}
	return joined(files), nil
}

func joined(files map[string]string) string {
	var names []string
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		out.WriteString("---\n# Source: " + name + "\n" + strings.TrimSpace(files[name]) + "\n")
	}
	return out.String()
}
