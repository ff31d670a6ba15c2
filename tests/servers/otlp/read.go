// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// What GET /profiles answers.
type profile struct {
	Resource   map[string]any `json:"resource"`
	Scope      string         `json:"scope"`
	Type       [2]string      `json:"type"`
	PeriodType [2]string      `json:"period_type"`
	Period     int64          `json:"period"`
	TimeNs     uint64         `json:"time_ns"`
	DurationNs uint64         `json:"duration_ns"`
	ID         string         `json:"id"`
	Samples    []sample       `json:"samples"`
}

type sample struct {
	Values     []int64        `json:"values"`
	Attributes map[string]any `json:"attributes"`
	Frames     []frame        `json:"frames"`
}

type frame struct {
	Func    string         `json:"func"`
	System  string         `json:"system"`
	File    string         `json:"file"`
	Line    int64          `json:"line"`
	Start   int64          `json:"start"`
	Inlined bool           `json:"inlined"`
	Address uint64         `json:"address"`
	Mapping string         `json:"mapping"`
	BuildID string         `json:"build_id"`
	Kind    string         `json:"kind"`
	Has     map[string]any `json:"mapping_attributes"`
}

type reader struct {
	d      pprofile.ProfilesDictionary
	frames map[int32][]frame // by location
}

func (r *reader) text(i int32) string { return r.d.StringTable().At(int(i)) }

func (r *reader) valueType(t pprofile.ValueType) [2]string {
	return [2]string{r.text(t.TypeStrindex()), r.text(t.UnitStrindex())}
}

func (r *reader) attributes(record interface{ AttributeIndices() pcommon.Int32Slice }) map[string]any {
	m, err := pprofile.FromAttributeIndices(r.d.AttributeTable(), record, r.d)
	if err != nil {
		panic(err) // check() has made sure of it
	}
	return m.AsRaw()
}

func (r *reader) location(i int32) []frame {
	if known, ok := r.frames[i]; ok {
		return known
	}
	l := r.d.LocationTable().At(int(i))
	m := r.d.MappingTable().At(int(l.MappingIndex()))
	of := frame{Address: l.Address(), Mapping: r.text(m.FilenameStrindex()), Has: r.attributes(m)}
	for _, key := range []string{"gnu", "go", "htlhash"} {
		if id, ok := of.Has["process.executable.build_id."+key].(string); ok && of.BuildID == "" {
			of.BuildID = id
		}
	}
	of.Kind, _ = r.attributes(l)["profile.frame.type"].(string)
	frames := []frame{}
	for k := 0; k < l.Lines().Len(); k++ {
		line, f := l.Lines().At(k), of
		function := r.d.FunctionTable().At(int(line.FunctionIndex()))
		f.Func, f.System = r.text(function.NameStrindex()), r.text(function.SystemNameStrindex())
		f.File, f.Start = r.text(function.FilenameStrindex()), function.StartLine()
		f.Line, f.Inlined = line.Line(), k+1 < l.Lines().Len()
		frames = append(frames, f)
	}
	if len(frames) == 0 {
		frames = append(frames, of)
	}
	r.frames[i] = frames
	return frames
}

func (r *reader) sample(s pprofile.Sample) sample {
	out := sample{Values: s.Values().AsRaw(), Attributes: r.attributes(s), Frames: []frame{}}
	for _, i := range r.d.StackTable().At(int(s.StackIndex())).LocationIndices().AsRaw() {
		out.Frames = append(out.Frames, r.location(i)...)
	}
	return out
}

func (r *reader) profile(p pprofile.Profile) profile {
	id := p.ProfileID()
	out := profile{Type: r.valueType(p.SampleType()), PeriodType: r.valueType(p.PeriodType()),
		Period: p.Period(), TimeNs: uint64(p.Time()), DurationNs: p.DurationNano(),
		ID: hex.EncodeToString(id[:]), Samples: []sample{}}
	for i := 0; i < p.Samples().Len(); i++ {
		out.Samples = append(out.Samples, r.sample(p.Samples().At(i)))
	}
	return out
}

func read(p pprofile.Profiles) (profiles []profile, err error) {
	if err := check(p); err != nil {
		return nil, err
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("%v", panicked)
		}
	}()
	r := reader{d: p.Dictionary(), frames: map[int32][]frame{}}
	for i := 0; i < p.ResourceProfiles().Len(); i++ {
		of := p.ResourceProfiles().At(i)
		for k := 0; k < of.ScopeProfiles().Len(); k++ {
			scope := of.ScopeProfiles().At(k)
			for n := 0; n < scope.Profiles().Len(); n++ {
				out := r.profile(scope.Profiles().At(n))
				out.Resource, out.Scope = of.Resource().Attributes().AsRaw(), scope.Scope().Name()
				profiles = append(profiles, out)
			}
		}
	}
	return profiles, nil
}
