// SPDX-License-Identifier: Apache-2.0

// pprofcheck reads a pprof file as its consumers do and says what they would refuse or misread:
// google/pprof itself, Parca (v0.28.0) and Pyroscope (storage v2). It prints a summary of the
// profile as JSON and one line per finding; exit status 1 when there is any.
//
//	pprofcheck [-upload] FILE
//
// -upload adds the limits of one upload (bytes, samples), which a local file need not keep.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/google/pprof/profile"
)

type findings []string

func (f *findings) add(format string, args ...interface{}) {
	const most = 50
	if len(*f) < most {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

func read(path string) (plain []byte, err error) {
	data, err := os.ReadFile(path)
	if err != nil || len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	// One member only: not every reader goes on behind the first.
	z.Multistream(false)
	return io.ReadAll(z)
}

type mappingSummary struct {
	File, BuildID                                        string
	Start, Limit, Offset                                 string
	Locations                                            int
	HasFunctions, HasFilenames, HasLines, HasInlineFrame bool
}

func summarize(p *profile.Profile, plain int) map[string]interface{} {
	locations := map[uint64]int{}
	inlined, unnamed := 0, 0
	for _, l := range p.Location {
		if l.Mapping != nil {
			locations[l.Mapping.ID]++
		}
		if len(l.Line) > 1 {
			inlined++
		}
		if len(l.Line) == 0 {
			unnamed++
		}
	}
	mappings := []mappingSummary{}
	for _, m := range p.Mapping {
		mappings = append(mappings, mappingSummary{m.File, m.BuildID, fmt.Sprintf("%#x", m.Start),
			fmt.Sprintf("%#x", m.Limit), fmt.Sprintf("%#x", m.Offset), locations[m.ID],
			m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames})
	}
	types, totals := []string{}, make([]int64, len(p.SampleType))
	for _, t := range p.SampleType {
		types = append(types, t.Type+"/"+t.Unit)
	}
	keys := map[string]bool{}
	for _, s := range p.Sample {
		for i, v := range s.Value {
			totals[i] += v
		}
		for k := range s.Label {
			keys[k] = true
		}
		for k := range s.NumLabel {
			keys[k] = true
		}
	}
	labels := []string{}
	for k := range keys {
		labels = append(labels, k)
	}
	sort.Strings(labels)
	return map[string]interface{}{"types": types, "totals": totals, "default": p.DefaultSampleType,
		"period": p.Period, "time": p.TimeNanos, "duration": p.DurationNanos,
		"samples": len(p.Sample), "functions": len(p.Function), "locations": len(p.Location),
		"inlined_locations": inlined, "unnamed_locations": unnamed, "labels": labels,
		"comments": p.Comments, "mappings": mappings, "bytes": plain}
}

func main() {
	upload := flag.Bool("upload", false, "check the limits of one upload too")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: pprofcheck [-upload] FILE")
		os.Exit(2)
	}
	plain, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var f findings
	checkWire(plain, &f)
	p, err := profile.ParseUncompressed(plain)
	if err != nil {
		fmt.Fprintln(os.Stderr, "google/pprof cannot parse it:", err)
		os.Exit(1)
	}
	if err := p.CheckValid(); err != nil {
		f.add("google/pprof: not valid: %v", err)
	}
	checkProfile(p, &f)
	if *upload {
		checkUpload(p, len(plain), &f)
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(summarize(p, len(plain))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, text := range f {
		fmt.Fprintln(os.Stderr, "pprofcheck:", text)
	}
	if len(f) > 0 {
		os.Exit(1)
	}
}
