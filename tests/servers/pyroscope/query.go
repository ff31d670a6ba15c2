// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
)

var matcher = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_.]*)\s*=\s*"([^"]*)"\s*$`)

// The tests use only selectors made of equalities.
func parseSelector(selector string) (map[string]string, error) {
	wanted := map[string]string{}
	inner := strings.Trim(strings.TrimSpace(selector), "{}")
	if inner == "" {
		return wanted, nil
	}
	for _, part := range strings.Split(inner, ",") {
		m := matcher.FindStringSubmatch(part)
		if m == nil {
			return nil, refuse("cannot read %q", part)
		}
		wanted[m[1]] = m[2]
	}
	return wanted, nil
}

func (k *kept) matches(wanted map[string]string, start, end int64) bool {
	for name, value := range wanted {
		if k.labels[name] != value {
			return false
		}
	}
	return k.time.After(time.UnixMilli(start).Add(-time.Millisecond)) &&
		k.time.Before(time.UnixMilli(end).Add(time.Millisecond))
}

func (k *kept) typeID(i int) string {
	p, t := k.profile, k.profile.SampleType[i]
	return fmt.Sprintf("%s:%s:%s:%s:%s", k.labels["__name__"], text(p, t.Type), text(p, t.Unit),
		text(p, p.PeriodType.GetType()), text(p, p.PeriodType.GetUnit()))
}

func (s *server) ProfileTypes(_ context.Context, r *connect.Request[querierv1.ProfileTypesRequest]) (*connect.Response[querierv1.ProfileTypesResponse], error) {
	s.store.Lock()
	defer s.store.Unlock()
	seen := map[string]bool{}
	answer := &querierv1.ProfileTypesResponse{}
	for i := range s.store.profiles {
		k := &s.store.profiles[i]
		for t, st := range k.profile.SampleType {
			id := k.typeID(t)
			if seen[id] || !k.matches(nil, r.Msg.Start, r.Msg.End) {
				continue
			}
			seen[id] = true
			answer.ProfileTypes = append(answer.ProfileTypes, &typesv1.ProfileType{ID: id,
				Name: k.labels["__name__"], SampleType: text(k.profile, st.Type),
				SampleUnit: text(k.profile, st.Unit)})
		}
	}
	return connect.NewResponse(answer), nil
}

func (s *server) Series(_ context.Context, r *connect.Request[querierv1.SeriesRequest]) (*connect.Response[querierv1.SeriesResponse], error) {
	s.store.Lock()
	defer s.store.Unlock()
	answer := &querierv1.SeriesResponse{}
	seen := map[string]bool{}
	for i := range s.store.profiles {
		k := &s.store.profiles[i]
		if seen[key(k.labels)] || !k.matches(nil, r.Msg.Start, r.Msg.End) {
			continue
		}
		seen[key(k.labels)] = true
		labels := &typesv1.Labels{}
		for name, value := range k.labels {
			labels.Labels = append(labels.Labels, &typesv1.LabelPair{Name: name, Value: value})
		}
		answer.LabelsSet = append(answer.LabelsSet, labels)
	}
	return connect.NewResponse(answer), nil
}

// merger appends profiles to one another under new ids.
type merger struct {
	out     *profilev1.Profile
	strings map[string]int64
}

func (m *merger) text(p *profilev1.Profile, i int64) int64 {
	s := text(p, i)
	if n, ok := m.strings[s]; ok {
		return n
	}
	n := int64(len(m.out.StringTable))
	m.strings[s] = n
	m.out.StringTable = append(m.out.StringTable, s)
	return n
}

func (m *merger) valueType(p *profilev1.Profile, t *profilev1.ValueType) *profilev1.ValueType {
	return &profilev1.ValueType{Type: m.text(p, t.GetType()), Unit: m.text(p, t.GetUnit())}
}

func (m *merger) add(p *profilev1.Profile, kind int) {
	if len(m.out.SampleType) == 0 {
		m.out.SampleType = []*profilev1.ValueType{m.valueType(p, p.SampleType[kind])}
		m.out.PeriodType, m.out.Period = m.valueType(p, p.PeriodType), p.Period
		m.out.TimeNanos = p.TimeNanos
	}
	m.out.DurationNanos += p.DurationNanos
	mappings, functions, locations := map[uint64]uint64{0: 0}, map[uint64]uint64{}, map[uint64]uint64{}
	for _, x := range p.Mapping {
		n := &profilev1.Mapping{Id: uint64(len(m.out.Mapping) + 1), MemoryStart: x.MemoryStart,
			MemoryLimit: x.MemoryLimit, FileOffset: x.FileOffset, Filename: m.text(p, x.Filename),
			BuildId: m.text(p, x.BuildId), HasFunctions: x.HasFunctions, HasFilenames: x.HasFilenames,
			HasLineNumbers: x.HasLineNumbers, HasInlineFrames: x.HasInlineFrames}
		mappings[x.Id] = n.Id
		m.out.Mapping = append(m.out.Mapping, n)
	}
	for _, x := range p.Function {
		n := &profilev1.Function{Id: uint64(len(m.out.Function) + 1), Name: m.text(p, x.Name),
			SystemName: m.text(p, x.SystemName), Filename: m.text(p, x.Filename), StartLine: x.StartLine}
		functions[x.Id] = n.Id
		m.out.Function = append(m.out.Function, n)
	}
	for _, x := range p.Location {
		n := &profilev1.Location{Id: uint64(len(m.out.Location) + 1), MappingId: mappings[x.MappingId],
			Address: x.Address}
		for _, l := range x.Line {
			n.Line = append(n.Line, &profilev1.Line{FunctionId: functions[l.FunctionId], Line: l.Line})
		}
		locations[x.Id] = n.Id
		m.out.Location = append(m.out.Location, n)
	}
	for _, x := range p.Sample {
		n := &profilev1.Sample{Value: []int64{x.Value[kind]}}
		for _, id := range x.LocationId {
			n.LocationId = append(n.LocationId, locations[id])
		}
		m.out.Sample = append(m.out.Sample, n)
	}
}

func (s *server) SelectMergeProfile(_ context.Context, r *connect.Request[querierv1.SelectMergeProfileRequest]) (*connect.Response[profilev1.Profile], error) {
	wanted, err := parseSelector(r.Msg.LabelSelector)
	if err != nil {
		return nil, err
	}
	s.store.Lock()
	defer s.store.Unlock()
	m := &merger{out: &profilev1.Profile{StringTable: []string{""}}, strings: map[string]int64{"": 0}}
	for i := range s.store.profiles {
		k := &s.store.profiles[i]
		for t := range k.profile.SampleType {
			if k.matches(wanted, r.Msg.Start, r.Msg.End) && k.typeID(t) == r.Msg.ProfileTypeID {
				m.add(k.profile, t)
			}
		}
	}
	return connect.NewResponse(m.out), nil
}

// SelectMergeSpanProfile tells the total only.
func (s *server) SelectMergeSpanProfile(_ context.Context, r *connect.Request[querierv1.SelectMergeSpanProfileRequest]) (*connect.Response[querierv1.SelectMergeSpanProfileResponse], error) {
	wanted, err := parseSelector(r.Msg.LabelSelector)
	if err != nil {
		return nil, err
	}
	spans := map[string]bool{}
	for _, id := range r.Msg.SpanSelector {
		spans[id] = true
	}
	graph := &querierv1.FlameGraph{}
	s.store.Lock()
	defer s.store.Unlock()
	for i := range s.store.profiles {
		k := &s.store.profiles[i]
		for t := range k.profile.SampleType {
			if !k.matches(wanted, r.Msg.Start, r.Msg.End) || k.typeID(t) != r.Msg.ProfileTypeID {
				continue
			}
			for _, x := range k.profile.Sample {
				if spans[spanOf(k.profile, x)] {
					graph.Total += x.Value[t]
				}
			}
		}
	}
	return connect.NewResponse(&querierv1.SelectMergeSpanProfileResponse{Flamegraph: graph}), nil
}
