// SPDX-License-Identifier: Apache-2.0

// foreign OUT TESTDATA writes into the folder OUT pprof files that others make: each kind that Go's
// runtime has, of this program; what google/pprof reads in TESTDATA (gperftools, Java, old Go),
// written by it; and a difference of two, with negative values.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/google/pprof/profile"
)

var (
	sink  uint64
	kept  [][]byte
	mutex sync.Mutex
)

//go:noinline
func spin(until time.Time) {
	for time.Now().Before(until) {
		for i := uint64(0); i < 100000; i++ {
			sink = sink*31 + i
		}
	}
}

// Something for each kind of profile.
func work() {
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := 0; k < 20; k++ {
				mutex.Lock()
				kept = append(kept, make([]byte, 4096*(1+k)))
				time.Sleep(time.Millisecond)
				mutex.Unlock()
			}
		}()
	}
	all.Wait()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(1)
	}
}

func write(folder, name string, content func(f *os.File) error) {
	f, err := os.Create(filepath.Join(folder, name+".pb.gz"))
	must(err)
	must(content(f))
	must(f.Close())
}

func writeRuntime(folder string) {
	runtime.MemProfileRate = 1
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	write(folder, "go-cpu", func(f *os.File) error {
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		spin(time.Now().Add(time.Second))
		pprof.StopCPUProfile()
		return nil
	})
	work()
	for _, kind := range []string{"heap", "allocs", "mutex", "block", "goroutine", "threadcreate"} {
		write(folder, "go-"+kind, func(f *os.File) error { return pprof.Lookup(kind).WriteTo(f, 0) })
	}
}

func writeTestdata(folder, testdata string) (read []*profile.Profile) {
	entries, err := os.ReadDir(testdata)
	must(err)
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(testdata, entry.Name()))
		must(err)
		p, err := profile.ParseData(data)
		if strings.HasSuffix(entry.Name(), ".string") || err != nil {
			continue
		}
		write(folder, entry.Name(), func(f *os.File) error { return p.Write(f) })
		read = append(read, p)
	}
	return read
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: foreign OUT TESTDATA")
		os.Exit(2)
	}
	writeRuntime(os.Args[1])
	read := writeTestdata(os.Args[1], os.Args[2])
	if len(read) == 0 {
		must(fmt.Errorf("nothing in %s", os.Args[2]))
	}
	less := read[0].Copy()
	less.Scale(-1.5)
	difference, err := profile.Merge([]*profile.Profile{read[0], less})
	must(err)
	write(os.Args[1], "difference", func(f *os.File) error { return difference.Write(f) })
}
