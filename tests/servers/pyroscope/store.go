// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	"google.golang.org/protobuf/proto"
)

// The real server's defaults.
const (
	maxProfileBytes = 4 << 20
	maxSamples      = 16000
	maxDepth        = 1000
	maxLabels       = 30
	maxSeries       = 5000
	oldest          = time.Hour
	newest          = 10 * time.Minute
)

type kept struct {
	labels  map[string]string
	profile *profilev1.Profile
	time    time.Time
}

type store struct {
	sync.Mutex
	profiles []kept
	series   map[string]bool
}

func newStore() *store { return &store{series: map[string]bool{}} }

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)

func refuse(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

func checkLabels(labels map[string]string) error {
	if labels["__name__"] == "" {
		return refuse("the label __name__ is missing")
	}
	if len(labels) > maxLabels {
		return refuse("%d labels, at most %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		if !labelName.MatchString(name) || len(name) > 1024 || len(value) > 2048 || !utf8.ValidString(value) {
			return refuse("bad label %q", name)
		}
	}
	return nil
}

func text(p *profilev1.Profile, i int64) string {
	if i < 0 || int(i) >= len(p.StringTable) {
		return ""
	}
	return p.StringTable[i]
}

func checkProfile(p *profilev1.Profile, size int) error {
	if size > maxProfileBytes {
		return refuse("%d bytes, at most %d", size, maxProfileBytes)
	}
	if len(p.Sample) > maxSamples {
		return refuse("%d samples, at most %d", len(p.Sample), maxSamples)
	}
	if len(p.StringTable) == 0 || p.StringTable[0] != "" {
		return refuse("string 0 is not empty")
	}
	for _, s := range p.StringTable {
		if !utf8.ValidString(s) {
			return refuse("a string is not UTF-8")
		}
	}
	for _, t := range p.SampleType {
		if strings.Contains(text(p, t.Type), "-") {
			return refuse("sample type %q has a dash", text(p, t.Type))
		}
	}
	for _, s := range p.Sample {
		if len(s.Value) != len(p.SampleType) {
			return refuse("a sample has %d values for %d types", len(s.Value), len(p.SampleType))
		}
	}
	when := time.Unix(0, p.TimeNanos)
	if time.Since(when) > oldest || time.Until(when) > newest {
		return refuse("time %v is too far from now", when)
	}
	return nil
}

// normalize does what the real server does to an accepted profile.
func normalize(p *profilev1.Profile) {
	locations := map[uint64]*profilev1.Location{}
	functions := map[uint64]bool{}
	for _, f := range p.Function {
		functions[f.Id] = true
	}
	symbolized := map[uint64]bool{}
	for _, m := range p.Mapping {
		symbolized[m.Id] = m.HasFunctions
	}
	for _, l := range p.Location {
		locations[l.Id] = l
		if symbolized[l.MappingId] {
			l.Address = 0
		}
	}
	samples := p.Sample[:0]
	for _, s := range p.Sample {
		if len(s.LocationId) > maxDepth {
			s.LocationId = s.LocationId[len(s.LocationId)-maxDepth:]
		}
		whole := true
		for _, id := range s.LocationId {
			l := locations[id]
			whole = whole && l != nil
			for i := 0; whole && i < len(l.Line); i++ {
				whole = functions[l.Line[i].FunctionId]
			}
		}
		if whole {
			samples = append(samples, s)
		}
	}
	p.Sample = samples
}

func key(labels map[string]string) string {
	pairs := []string{}
	for k, v := range labels {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, v))
	}
	sort.Strings(pairs)
	return strings.Join(pairs, ",")
}

// span is the label by which samples of a span are found. Of the string labels it alone makes no series.
const span = "span_id"

func spanOf(p *profilev1.Profile, s *profilev1.Sample) string {
	for _, l := range s.Label {
		if key := text(p, l.Key); (key == span || key == "profile_id") && len(text(p, l.Str)) == 16 {
			return text(p, l.Str)
		}
	}
	return ""
}

// split makes a series of each set of string labels; numeric labels are dropped.
func split(labels map[string]string, p *profilev1.Profile) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, s := range p.Sample {
		own := map[string]string{}
		for k, v := range labels {
			own[k] = v
		}
		for _, l := range s.Label {
			if key := text(p, l.Key); l.Str != 0 && key != span && key != "profile_id" {
				own[text(p, l.Key)] = text(p, l.Str)
			}
		}
		all[key(own)] = own
	}
	return all
}

func (s *store) put(given map[string]string, plain []byte) error {
	labels := map[string]string{}
	for k, v := range given {
		labels[k] = v
	}
	if labels["service_name"] == "" {
		labels["service_name"] = "unknown_service"
	}
	if err := checkLabels(labels); err != nil {
		return err
	}
	p := &profilev1.Profile{}
	if err := proto.Unmarshal(plain, p); err != nil {
		return connect.NewError(connect.CodeInternal, err)
	}
	if len(p.Sample) == 0 {
		return connect.NewError(connect.CodeInternal, errors.New("a profile without samples"))
	}
	if err := checkProfile(p, len(plain)); err != nil {
		return err
	}
	normalize(p)
	s.Lock()
	defer s.Unlock()
	for k := range split(labels, p) {
		s.series[k] = true
	}
	if len(s.series) > maxSeries {
		return connect.NewError(connect.CodeResourceExhausted, errors.New("too many series"))
	}
	s.profiles = append(s.profiles, kept{labels, p, time.Unix(0, p.TimeNanos)})
	return nil
}
