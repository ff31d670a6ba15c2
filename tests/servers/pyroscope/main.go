// SPDX-License-Identifier: Apache-2.0

// strict-pyroscope is a test server with the API of Grafana Pyroscope (its published Connect handlers
// and messages) that refuses what the real server refuses, and normalizes accepted profiles as the
// real one does. It keeps everything in memory.
//
//	strict-pyroscope -address 127.0.0.1:4040 [-old] [-multitenancy] [-rate BYTES -burst BYTES]
//
// -old knows only /ingest, like servers before 1.0. Prints `ready ADDRESS` when it listens.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
)

// limiter is a token bucket over uncompressed bytes, like the real server's per tenant.
type limiter struct {
	sync.Mutex
	rate, burst, tokens float64
	last                time.Time
}

func (l *limiter) allow(size int) bool {
	l.Lock()
	defer l.Unlock()
	now := time.Now()
	l.tokens += now.Sub(l.last).Seconds() * l.rate
	l.last = now
	if l.tokens > l.burst {
		l.tokens = l.burst
	}
	if float64(size) > l.tokens {
		return false
	}
	l.tokens -= float64(size)
	return true
}

type server struct {
	querierv1connect.UnimplementedQuerierServiceHandler
	store   *store
	limit   *limiter
	tenants bool
}

const maxPlainBytes = 64 << 20

func decompress(data []byte) ([]byte, error) {
	if len(data) < 2 || data[0] != 0x1f || data[1] != 0x8b {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxPlainBytes))
}

func (s *server) put(labels map[string]string, raw []byte) error {
	plain, err := decompress(raw)
	if err != nil {
		return connect.NewError(connect.CodeInternal, err)
	}
	if !s.limit.allow(len(plain)) {
		return connect.NewError(connect.CodeResourceExhausted,
			errors.New("push rate limit of the tenant exceeded"))
	}
	return s.store.put(labels, plain)
}

func (s *server) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	if s.tenants && r.Header().Get("X-Scope-OrgID") == "" {
		return nil, connect.NewError(connect.CodeUnauthenticated, errors.New("no org id"))
	}
	for _, series := range r.Msg.Series {
		labels := map[string]string{}
		for _, l := range series.Labels {
			if _, twice := labels[l.Name]; twice {
				return nil, connect.NewError(connect.CodeInvalidArgument,
					fmt.Errorf("label %s is there twice", l.Name))
			}
			labels[l.Name] = l.Value
		}
		for _, sample := range series.Samples {
			if err := s.put(labels, sample.RawProfile); err != nil {
				return nil, err
			}
		}
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

// parseName splits service{a=b,c=d}.
func parseName(name string) (map[string]string, error) {
	service, rest, found := strings.Cut(name, "{")
	labels := map[string]string{"service_name": service, "__name__": "process_cpu"}
	if !found {
		return labels, nil
	}
	rest, found = strings.CutSuffix(rest, "}")
	if !found {
		return nil, errors.New("no } in the name")
	}
	for _, pair := range strings.Split(rest, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return nil, errors.New("no = in a label of the name")
		}
		labels[key] = value
	}
	return labels, nil
}

func (s *server) ingest(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPlainBytes))
	labels, nameErr := parseName(r.URL.Query().Get("name"))
	switch {
	case s.tenants && r.Header.Get("X-Scope-OrgID") == "":
		http.Error(w, "no org id", http.StatusUnauthorized)
		return
	case err != nil || nameErr != nil || r.URL.Query().Get("format") != "pprof":
		http.Error(w, "bad parameters", http.StatusBadRequest)
		return
	case len(body) == 0:
		return // 200, but nothing is stored
	}
	if err := s.put(labels, body); err != nil {
		status := http.StatusUnprocessableEntity
		if connect.CodeOf(err) == connect.CodeResourceExhausted {
			status = http.StatusTooManyRequests
		}
		http.Error(w, err.Error(), status)
	}
}

func main() {
	address := flag.String("address", "127.0.0.1:0", "")
	old := flag.Bool("old", false, "")
	tenants := flag.Bool("multitenancy", false, "")
	rate := flag.Float64("rate", 4<<20, "")
	burst := flag.Float64("burst", 2<<20, "")
	flag.Parse()
	s := &server{store: newStore(), tenants: *tenants,
		limit: &limiter{rate: *rate, burst: *burst, tokens: *burst, last: time.Now()}}
	mux := http.NewServeMux()
	if !*old {
		mux.Handle(pushv1connect.NewPusherServiceHandler(s))
	}
	mux.Handle(querierv1connect.NewQuerierServiceHandler(s))
	mux.HandleFunc("POST /ingest", s.ingest)
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ready") })
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("address", listener.Addr())
	fmt.Println("ready")
	fmt.Fprintln(os.Stderr, http.Serve(listener, mux))
	os.Exit(1)
}
