// SPDX-License-Identifier: Apache-2.0

// parca-lite: the real Parca store, query and debuginfo services (v0.28.0) behind its real server, without
// scraping, service discovery and the cloud SDKs they drag in. Same wiring as pkg/parca.Run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing/fstest"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dgraph-io/badger/v4"
	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	debuginfopb "github.com/parca-dev/parca/gen/proto/go/parca/debuginfo/v1alpha1"
	profilestorepb "github.com/parca-dev/parca/gen/proto/go/parca/profilestore/v1alpha1"
	querypb "github.com/parca-dev/parca/gen/proto/go/parca/query/v1alpha1"
	"github.com/parca-dev/parca/pkg/debuginfo"
	"github.com/parca-dev/parca/pkg/demangle"
	"github.com/parca-dev/parca/pkg/ingester"
	"github.com/parca-dev/parca/pkg/kv"
	"github.com/parca-dev/parca/pkg/parcacol"
	"github.com/parca-dev/parca/pkg/profile"
	"github.com/parca-dev/parca/pkg/profilestore"
	queryservice "github.com/parca-dev/parca/pkg/query"
	"github.com/parca-dev/parca/pkg/server"
	"github.com/parca-dev/parca/pkg/symbolizer"
	"github.com/polarsignals/frostdb"
	"github.com/polarsignals/frostdb/dynparquet"
	"github.com/polarsignals/frostdb/query"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/thanos-io/objstore/providers/filesystem"
	"go.opentelemetry.io/otel/trace/noop"
	otelpb "go.opentelemetry.io/proto/otlp/collector/profiles/v1development"
	"google.golang.org/grpc"
)

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return v
}

func main() {
	addr := flag.String("http-address", "127.0.0.1:7070", "")
	dir := flag.String("dir", "data", "")
	maxUpload := flag.Int64("debuginfo-upload-max-size", 1000000000, "")
	flag.Parse()
	ctx, logger, reg := context.Background(), level.NewFilter(log.NewLogfmtLogger(os.Stderr), level.AllowDebug()), prometheus.NewRegistry()
	tp, mem := noop.NewTracerProvider(), memory.DefaultAllocator
	tr := tp.Tracer("")
	bucket := must(filesystem.NewBucket(*dir))
	db := must(badger.Open(badger.DefaultOptions("").WithInMemory(true).WithLogger(nil)))
	nop := debuginfo.NopDebuginfodClients{}
	meta := debuginfo.NewObjectStoreMetadata(logger, bucket)
	dbg := must(debuginfo.NewStore(tr, logger, meta, bucket, nop, debuginfo.SignedUpload{}, 15*time.Minute, *maxUpload))
	col := must(frostdb.New(frostdb.WithLogger(logger), frostdb.WithRegistry(reg)))
	colDB := must(col.DB(ctx, "parca"))
	def := profile.SchemaDefinition()
	table := must(colDB.Table("stacktraces", frostdb.NewTableConfig(def)))
	schema := must(dynparquet.SchemaFromDefinition(def))
	q := parcacol.NewQuerier(logger, tr, query.NewEngine(mem, colDB.TableProvider()), "stacktraces",
		symbolizer.New(logger, meta, symbolizer.NewBadgerCache(db), debuginfo.NewFetcher(nop, bucket), *dir+"/cache", "", symbolizer.WithDemangleMode("simple")),
		must(demangle.NewDefaultDemangler()), mem)
	s := profilestore.NewProfileColumnStore(reg, logger, tr, ingester.NewIngester(logger, table), schema, mem)
	api := queryservice.NewColumnQueryAPI(logger, tr, nil, q, mem, parcacol.NewArrowToProfileConverter(tr, kv.NewKeyMaker()), queryservice.NewBucketSourceFinder(bucket, nop))
	err := server.NewServer(reg, "lite").ListenAndServe(ctx, logger, fstest.MapFS{}, *addr, 5*time.Second, time.Minute, nil, "",
		server.RegisterableFunc(func(ctx context.Context, srv *grpc.Server, mux *runtime.ServeMux, ep string, o []grpc.DialOption) error {
			debuginfopb.RegisterDebuginfoServiceServer(srv, dbg)
			profilestorepb.RegisterProfileStoreServiceServer(srv, s)
			profilestorepb.RegisterAgentsServiceServer(srv, s)
			otelpb.RegisterProfilesServiceServer(srv, s)
			querypb.RegisterQueryServiceServer(srv, api)
			for _, f := range []func(context.Context, *runtime.ServeMux, string, []grpc.DialOption) error{
				debuginfopb.RegisterDebuginfoServiceHandlerFromEndpoint, profilestorepb.RegisterProfileStoreServiceHandlerFromEndpoint,
				profilestorepb.RegisterAgentsServiceHandlerFromEndpoint, querypb.RegisterQueryServiceHandlerFromEndpoint} {
				if err := f(ctx, mux, ep, o); err != nil {
					return err
				}
			}
			return nil
		}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
