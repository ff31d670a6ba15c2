// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"

	"github.com/google/pprof/profile"
)

// Parca makes PromQL names of the sample types; a dash there is refused.
var typeName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
var functionStart = regexp.MustCompile(`\+0x[0-9a-f]+$`)

const (
	maxDepth       = 1000 // Pyroscope cuts the leaf side beyond
	maxUploadBytes = 4 << 20
	maxSamples     = 16000
)

func checkHead(p *profile.Profile, f *findings) {
	names := map[string]bool{}
	for _, t := range p.SampleType {
		names[t.Type] = true
		if !typeName.MatchString(t.Type) || !typeName.MatchString(t.Unit) {
			f.add("sample type %q/%q is no PromQL name", t.Type, t.Unit)
		}
	}
	if len(p.SampleType) == 0 {
		f.add("no sample type")
	}
	if !names[p.DefaultSampleType] {
		f.add("default sample type %q is none of the types", p.DefaultSampleType)
	}
	if p.PeriodType == nil || p.PeriodType.Type == "" || p.PeriodType.Unit == "" {
		f.add("no period type: Parca v0.28.0 dies of it")
	}
	if p.Period == 0 {
		f.add("period 0: Parca multiplies counts by it")
	}
	if p.TimeNanos == 0 || p.DurationNanos == 0 {
		f.add("time %d, duration %d", p.TimeNanos, p.DurationNanos)
	}
}

// standsIn says whether the start of the function stands in for its name: libfoo.so+0x62f00.
func standsIn(f *profile.Function) bool {
	return f.SystemName == "" && functionStart.MatchString(f.Name)
}

func checkMapping(m *profile.Mapping, locations []*profile.Location, f *findings) {
	functions, files, lines := len(locations) > 0, len(locations) > 0, len(locations) > 0
	for _, l := range locations {
		if l.Address < m.Start || l.Address >= m.Limit {
			f.add("address %#x outside its mapping %s [%#x, %#x)", l.Address, m.File, m.Start, m.Limit)
		}
		if len(l.Line) == 0 {
			functions, files, lines = false, false, false
		}
		for _, n := range l.Line {
			functions = functions && n.Function.Name != "" && !standsIn(n.Function)
			files = files && n.Function.Filename != ""
			lines = lines && n.Line > 0
		}
	}
	if m.HasFunctions != functions || m.HasFilenames != files || m.HasLineNumbers != lines {
		f.add("mapping %s says functions=%v files=%v lines=%v, its locations say %v %v %v", m.File,
			m.HasFunctions, m.HasFilenames, m.HasLineNumbers, functions, files, lines)
	}
	if m.HasInlineFrames && !lines {
		f.add("mapping %s has inline frames but not all lines", m.File)
	}
	if m.File == "" {
		f.add("mapping %d has no file", m.ID)
	}
}

func checkMappings(p *profile.Profile, f *findings) {
	of := map[*profile.Mapping][]*profile.Location{}
	for _, l := range p.Location {
		if l.Mapping != nil {
			of[l.Mapping] = append(of[l.Mapping], l)
		}
	}
	for _, m := range p.Mapping {
		checkMapping(m, of[m], f)
	}
}

func checkSample(p *profile.Profile, s *profile.Sample, f *findings) {
	if len(s.Location) == 0 {
		f.add("a sample without locations")
	}
	if len(s.Location) > maxDepth {
		f.add("a stack of %d frames", len(s.Location))
	}
	for _, v := range s.Value {
		if v < 0 {
			f.add("negative value %d", v)
		}
	}
	for key, values := range s.Label {
		if len(values) != 1 || values[0] == "" {
			f.add("label %s has the values %q", key, values)
		}
		switch key {
		case "pid", "tid", "goid", "cpu":
			f.add("label %s is a text: -tagfocus=%s=17 does not find it", key, key)
		}
	}
	for key, values := range s.NumLabel {
		if len(values) != 1 {
			f.add("label %s has the values %v", key, values)
		}
		if units := s.NumUnit[key]; len(units) != 1 || units[0] == "" {
			f.add("label %s has no unit: a 0 would be dropped", key)
		}
		if _, both := s.Label[key]; both {
			f.add("label %s is a number and a text", key)
		}
		if key == "goid" && values[0] == 0 {
			f.add("goid 0 is no goroutine")
		}
	}
}

func checkProfile(p *profile.Profile, f *findings) {
	checkHead(p, f)
	checkMappings(p, f)
	for _, s := range p.Sample {
		checkSample(p, s, f)
	}
	for _, fn := range p.Function {
		if fn.Name == "" {
			f.add("function %d has no name", fn.ID)
		}
		if strings.ContainsRune(fn.Name, '\n') {
			f.add("function %d has a line break in its name", fn.ID)
		}
	}
}

func checkUpload(p *profile.Profile, plain int, f *findings) {
	if plain > maxUploadBytes {
		f.add("%d bytes are more than one upload may have", plain)
	}
	if len(p.Sample) > maxSamples {
		f.add("%d samples are more than one upload may have", len(p.Sample))
	}
}
