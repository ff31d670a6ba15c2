// SPDX-License-Identifier: Apache-2.0

// otlp-collector is the OTLP receiver of the OpenTelemetry Collector (its own module, gRPC and HTTP) with
// a consumer that refuses requests against the profiles' data model and serves what it received.
//
//	otlp-collector -address 127.0.0.1:4300 -grpc 127.0.0.1:4317 -http 127.0.0.1:4318 [-busy N]
//
// -busy answers the first N requests like a collector with a full queue. Queries, on -address:
// GET /ready, and GET /profiles: all profiles, their stacks with names, as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net/http"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type store struct {
	sync.Mutex
	profiles []profile
	busy     atomic.Int64
	refused  []string
}

func (s *store) consume(_ context.Context, p pprofile.Profiles) error {
	if s.busy.Add(-1) >= 0 {
		return errors.New("sending queue is full")
	}
	profiles, err := read(p)
	s.Lock()
	defer s.Unlock()
	if err != nil {
		s.refused = append(s.refused, err.Error())
		return consumererror.NewPermanent(status.Error(codes.InvalidArgument, err.Error()))
	}
	s.profiles = append(s.profiles, profiles...)
	return nil
}

type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

func start(grpc, http string, s *store) error {
	factory := otlpreceiver.NewFactory().(xreceiver.Factory)
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = grpc
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = http
	consumer, err := xconsumer.NewProfiles(s.consume)
	if err != nil {
		return err
	}
	settings := receiver.Settings{ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{Logger: zap.NewNop(),
			TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Resource: pcommon.NewResource()}}
	r, err := factory.CreateProfiles(context.Background(), settings, config, consumer)
	if err != nil {
		return err
	}
	return r.Start(context.Background(), host{})
}

func main() {
	address := flag.String("address", "127.0.0.1:0", "")
	grpc := flag.String("grpc", "127.0.0.1:4317", "")
	plain := flag.String("http", "127.0.0.1:4318", "")
	busy := flag.Int64("busy", 0, "")
	flag.Parse()
	s := &store{profiles: []profile{}, refused: []string{}}
	s.busy.Store(*busy)
	if err := start(*grpc, *plain, s); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("GET /ready", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /profiles", func(w http.ResponseWriter, _ *http.Request) {
		s.Lock()
		defer s.Unlock()
		json.NewEncoder(w).Encode(map[string]any{"profiles": s.profiles, "refused": s.refused})
	})
	log.Fatal(http.ListenAndServe(*address, nil))
}
