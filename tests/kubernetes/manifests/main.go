// SPDX-License-Identifier: Apache-2.0

// Renders what deploy/ has for Kubernetes with the real tools' own packages:
//
//	manifests DEPLOY VALUES OUT
//
// Each folder of DEPLOY/kubernetes/overlays, and of VALUES/overlays, by kustomize; the chart DEPLOY/helm/fathom with
// each file of VALUES, by helm, and for Kubernetes 1.29 with default.yaml. OUT/NAME.yaml is what kubectl would apply, OUT/NAME.json the same as an array.
// Objects of Kubernetes' own kinds must have only fields that exist. The chart's schema must refuse each file
// of VALUES/refused.
//
//	manifests -json FILE
//
// prints the objects of a YAML file, of any kind, as an array.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// Of the cluster, unless a rendering is for another.
const version = "v1.34.4"

func die(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "manifests: "+format+"\n", arguments...)
	os.Exit(1)
}

func base(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".yaml")
}

func matching(pattern string) []string {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		die("nothing matches %s", pattern)
	}
	return paths
}

func write(out, name, text string) {
	objects, err := objectsOf(text, checkFields)
	if err != nil {
		die("%s: %v", name, err)
	}
	array, err := json.MarshalIndent(objects, "", " ")
	if err != nil {
		die("%s: %v", name, err)
	}
	for suffix, content := range map[string][]byte{".yaml": []byte(text), ".json": array} {
		if err := os.WriteFile(filepath.Join(out, name+suffix), content, 0o644); err != nil {
			die("%v", err)
		}
	}
}

func writeHelm(out, name, chart, values, version string) {
	text, err := helm(chart, values, version)
	if err != nil {
		die("%s: %v", values, err)
	}
	write(out, name, text)
}

func printObjects(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		die("%v", err)
	}
	objects, err := objectsOf(string(text), func([]byte, string) error { return nil })
	if err != nil {
		die("%s: %v", path, err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(objects); err != nil {
		die("%v", err)
	}
}

func main() {
	log.SetOutput(io.Discard) // helm names each symbolic link that it follows
	if len(os.Args) == 3 && os.Args[1] == "-json" {
		printObjects(os.Args[2])
		return
	}
	if len(os.Args) != 4 {
		die("usage: manifests DEPLOY VALUES OUT")
	}
	deploy, values, out := os.Args[1], os.Args[2], os.Args[3]
	for _, root := range []string{filepath.Join(deploy, "kubernetes"), values} {
		for _, path := range matching(filepath.Join(root, "overlays", "*")) {
			text, err := kustomize(path)
			if err != nil {
				die("%s: %v", path, err)
			}
			write(out, "kustomize-"+base(path), text)
		}
	}
	chart := filepath.Join(deploy, "helm", "fathom")
	for _, path := range matching(filepath.Join(values, "*.yaml")) {
		writeHelm(out, "helm-"+base(path), chart, path, version)
	}
	writeHelm(out, "helm-kubernetes-1.29", chart, filepath.Join(values, "default.yaml"), "v1.29.0")
	for _, path := range matching(filepath.Join(values, "refused", "*.yaml")) {
		if _, err := helm(chart, path, version); err == nil {
			die("%s is not refused", path)
		} else if !strings.Contains(err.Error(), "schema") {
			die("%s is refused, but not by the schema: %v", path, err)
		}
		fmt.Println("refused", base(path))
	}
}
