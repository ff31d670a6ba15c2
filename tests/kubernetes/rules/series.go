// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	step    = 30 * time.Second
	history = 3 * time.Hour
)

var end = time.Unix(1_700_000_000, 0)

// A series that goes on as it did between two scrapes.
type series struct {
	labels     labels.Labels
	last, each float64 // its last value, and what it grows each step
}

func parse(path string) (map[string]float64, map[string]labels.Labels, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	values, names := map[string]float64{}, map[string]labels.Labels{}
	parser := textparse.NewPromParser(text, labels.NewSymbolTable())
	for {
		kind, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return values, names, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if kind != textparse.EntrySeries {
			continue
		}
		var found labels.Labels
		parser.Labels(&found)
		_, _, value := parser.Series()
		builder := labels.NewBuilder(found)
		for name, text := range map[string]string{"job": "fathom", "instance": "10.0.0.1:7071", "node": "node-1"} {
			builder.Set(name, text)
		}
		all := builder.Labels()
		values[all.String()], names[all.String()] = value, all
	}
}

// Series from two scrapes of a live agent, SECONDS apart, and Prometheus' own `up`.
func fromScrapes(first, second string, seconds float64) ([]series, error) {
	before, _, err := parse(first)
	if err != nil {
		return nil, err
	}
	after, names, err := parse(second)
	if err != nil {
		return nil, err
	}
	all := []series{{labels: labels.FromStrings("__name__", "up", "job", "fathom", "instance", "10.0.0.1:7071", "node", "node-1"), last: 1}}
	for key, value := range after {
		s := series{labels: names[key], last: value}
		if old, ok := before[key]; ok && isCounter(s.labels.Get("__name__")) {
			s.each = (value - old) / seconds * step.Seconds()
		}
		if s.labels.Get("__name__") == "process_start_time_seconds" {
			s.last = float64(end.Add(-2 * history).Unix())
		}
		all = append(all, s)
	}
	return all, nil
}

func isCounter(name string) bool {
	for _, suffix := range []string{"_total", "_bucket", "_sum", "_count"} {
		if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
			return true
		}
	}
	return false
}

// What a Prometheus would have that had scraped these for HISTORY.
type server struct {
	db     *tsdb.DB
	engine *promql.Engine
	folder string
}

func newServer(all []series) (*server, error) {
	folder, err := os.MkdirTemp("", "rules")
	if err != nil {
		return nil, err
	}
	options := tsdb.DefaultOptions()
	options.OutOfOrderTimeWindow = 0
	db, err := tsdb.Open(folder, nil, nil, options, nil)
	if err != nil {
		return nil, err
	}
	s := &server{db: db, folder: folder, engine: promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})}
	app := db.Appender(context.Background())
	for at := end.Add(-history); !at.After(end); at = at.Add(step) {
		steps := float64(end.Sub(at) / step)
		for _, one := range all {
			if _, err := app.Append(0, one.labels, at.UnixMilli(), one.last-steps*one.each+1e6*boolean(one.each != 0)); err != nil {
				return nil, err
			}
		}
	}
	return s, app.Commit()
}

// Counters begin above zero: a negative one would be a reset.
func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s *server) close() {
	s.db.Close()
	os.RemoveAll(s.folder)
}

func (s *server) query(expression string) (promql.Vector, error) {
	query, err := s.engine.NewInstantQuery(context.Background(), s.db, nil, expression, end)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	result := query.Exec(context.Background())
	if result.Err != nil {
		return nil, result.Err
	}
	found, err := result.Vector()
	if err != nil {
		return nil, err
	}
	kept := append(promql.Vector(nil), found...)
	return kept, nil
}
