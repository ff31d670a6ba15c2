// SPDX-License-Identifier: Apache-2.0

// Package churn is a load for samplers of goroutines. Main prints `ready`, keeps a processor busy
// until a line comes on standard input, then runs goroutines that each work only below functions
// that spell their own id (digits.go), and have the last digits of it as a label: 100,000 that end
// soon, and some that last. At last it prints `churned COUNT goroutines` and returns when standard
// input ends.
package churn

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

const atOnce = 64

var (
	over    int32
	zero    *os.File
	null    *os.File
	ballast *node
)

func goid() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	id, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		panic(err)
	}
	return id
}

// tell runs work below the functions that spell the goroutine's id, and with its label.
func tell(work func()) {
	id := goid()
	labels := pprof.Labels("churn", fmt.Sprintf("%03x", id%4096))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), labels))
	spell(id, digits, work)
}

func open(path string, flags int) *os.File {
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		panic(err)
	}
	return file
}

// short is a goroutine that does one thing once.
func short(number int, done *sync.WaitGroup, room chan bool) {
	defer func() { <-room; done.Done() }()
	kind := works[number%len(works)]
	tell(func() {
		kind(uint64(number))
		// The thread of a goroutine that ends while locked to it ends as well.
		if number%1000 == 0 {
			runtime.LockOSThread()
		}
	})
}

// long does one thing until all is over.
func long(number int, done *sync.WaitGroup) {
	defer done.Done()
	tell(func() {
		for x := uint64(number); atomic.LoadInt32(&over) == 0; x++ {
			works[number](x)
			runtime.Gosched()
		}
	})
}

func churn(count int) {
	var shorts, longs sync.WaitGroup
	for number := range works {
		longs.Add(1)
		go long(number, &longs)
	}
	room := make(chan bool, atOnce)
	for number := 0; number < count; number++ {
		room <- true
		shorts.Add(1)
		go short(number, &shorts, room)
	}
	shorts.Wait()
	atomic.StoreInt32(&over, 1)
	longs.Wait()
}

// readLine leaves what follows to other libraries of the process, which read the same input.
func readLine(from io.Reader) {
	var b [1]byte
	for b[0] != '\n' {
		if _, err := io.ReadFull(from, b[:]); err != nil {
			return
		}
	}
}

func warm(stop *int32, stopped chan bool) {
	for atomic.LoadInt32(stop) == 0 {
		mix(1)
	}
	stopped <- true
}

func Main() {
	count := 100000
	if text := os.Getenv("CHURN"); text != "" {
		count, _ = strconv.Atoi(text)
	}
	zero, null = open("/dev/zero", os.O_RDONLY), open("/dev/null", os.O_WRONLY)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
		}
	}()
	// Garbage collections are frequent, and each has something to mark.
	debug.SetGCPercent(25)
	ballast = build(14)

	var stop int32
	stopped := make(chan bool)
	go warm(&stop, stopped)
	fmt.Println("ready")
	readLine(os.Stdin)
	atomic.StoreInt32(&stop, 1)
	<-stopped
	pprof.StartCPUProfile(io.Discard) // for its signals
	churn(count)
	pprof.StopCPUProfile()
	fmt.Println("churned", count, "goroutines")
	io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(ballast)
}
