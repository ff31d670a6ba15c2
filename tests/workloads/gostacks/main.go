// SPDX-License-Identifier: Apache-2.0

// Gostacks runs goroutines that each do one kind of work, and tells where they do it from:
//
//	gostacks [SECONDS]
//
// prints, for each kind, `kind NAME GOID FUNCTIONS`: the functions are what runtime.Callers says in
// the step that the kind repeats, innermost first; then `ready`, and runs until it is killed or the
// time is up. A sample of that goroutine is taken in the kind's own function or below its step,
// unless it was about to be parked. What the steps do ends in functions without a frame, or leads
// the runtime to other stacks.
package main

import (
	"bytes"
	"fmt"
	"gostacks/leaf"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type node struct {
	left, right *node
	text        [48]byte
}

var (
	sink    uint64
	text    = bytes.Repeat([]byte("x"), 20000)
	copied  = make([]byte, len(text))
	names   = map[string]int{}
	keys    []string
	tree    *node
	request = make(chan uint64)
	reply   = make(chan uint64)
	zero    *os.File
	printed sync.Mutex
	told    sync.WaitGroup
	start   = make(chan struct{})
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

func callers() string {
	var pcs [64]uintptr
	var functions []string
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		functions = append(functions, frame.Function)
	}
	return strings.Join(functions, ";")
}

type kind struct {
	name string
	step func(k *kind)
	told bool
}

// tell prints the callers of the step that calls it: once, before the work begins.
//
//go:noinline
func (k *kind) tell() {
	if k.told {
		return
	}
	k.told = true
	functions := callers()
	printed.Lock()
	fmt.Println("kind", k.name, goid(), functions)
	printed.Unlock()
	told.Done()
	<-start
}

//go:noinline
func small(x uint64) uint64 { return x*6364136223846793005 + 1442695040888963407 }

//go:noinline
func framed(x uint64) uint64 { return small(x) + small(x+1) }

//go:noinline
func build(depth int) *node {
	if depth == 0 {
		return nil
	}
	return &node{left: build(depth - 1), right: build(depth - 1)}
}

// deep needs more stack than a goroutine begins with, again and again: it is shrunk or new.
//
//go:noinline
func deep(depth int) byte {
	var room [400]byte
	room[depth&255] = byte(depth)
	if depth == 0 {
		return room[0]
	}
	return deep(depth-1) + room[7]
}

//go:noinline
func stepSpin(k *kind) {
	k.tell()
	leaf.Spin()
}

//go:noinline
func stepClobber(k *kind) {
	k.tell()
	leaf.Clobber()
}

//go:noinline
func stepThrough(k *kind) {
	k.tell()
	leaf.Through()
}

//go:noinline
func stepSmall(k *kind) {
	k.tell()
	for i := 0; i < 100; i++ {
		sink = small(sink)
	}
}

//go:noinline
func stepFramed(k *kind) {
	k.tell()
	for i := 0; i < 100; i++ {
		sink = framed(sink)
	}
}

//go:noinline
func stepMove(k *kind) {
	k.tell()
	copy(copied, text)
}

//go:noinline
func stepIndex(k *kind) {
	k.tell()
	sink += uint64(bytes.IndexByte(text, 'y'))
}

//go:noinline
func stepEqual(k *kind) {
	k.tell()
	if bytes.Equal(copied, text) {
		sink++
	}
}

//go:noinline
func stepLookup(k *kind) {
	k.tell()
	for _, k := range keys {
		sink += uint64(names[k])
	}
}

//go:noinline
func stepMap(k *kind) {
	k.tell()
	m := map[uint64]uint64{}
	for i := uint64(0); i < 500; i++ {
		m[i] = i
	}
	sink += uint64(len(m))
}

//go:noinline
func stepGarbage(k *kind) {
	k.tell()
	tree = build(12)
}

//go:noinline
func stepClock(k *kind) {
	k.tell()
	sink += uint64(time.Now().UnixNano())
}

//go:noinline
func stepCall(k *kind) {
	k.tell()
	var b [512]byte
	n, _ := zero.Read(b[:])
	sink += uint64(n)
}

//go:noinline
func stepRaw(k *kind) {
	k.tell()
	sink += uint64(syscall.Getppid())
}

//go:noinline
func stepChannel(k *kind) {
	k.tell()
	request <- sink
	sink += <-reply
}

//go:noinline
func stepTimer(k *kind) {
	k.tell()
	t := time.AfterFunc(time.Hour, func() {})
	t.Stop()
	time.Sleep(20 * time.Microsecond)
}

//go:noinline
func stepGrow(k *kind) {
	k.tell()
	done := make(chan byte)
	go grow(done)
	sink += uint64(<-done)
}

//go:noinline
func grow(done chan byte) { done <- deep(32) }

//go:noinline
func stepPanic(k *kind) {
	k.tell()
	defer func() { sink += uint64(len(recover().(string))) }()
	panic("again")
}

var kinds = []*kind{
	{name: "spin", step: stepSpin},
	{name: "clobber", step: stepClobber},
	{name: "through", step: stepThrough},
	{name: "small", step: stepSmall},
	{name: "framed", step: stepFramed},
	{name: "move", step: stepMove},
	{name: "index", step: stepIndex},
	{name: "equal", step: stepEqual},
	{name: "lookup", step: stepLookup},
	{name: "map", step: stepMap},
	{name: "garbage", step: stepGarbage},
	{name: "clock", step: stepClock},
	{name: "call", step: stepCall},
	{name: "raw", step: stepRaw},
	{name: "channel", step: stepChannel},
	{name: "timer", step: stepTimer},
	{name: "grow", step: stepGrow},
	{name: "panic", step: stepPanic},
}

// run is each goroutine's own loop: what it calls is the step.
//
//go:noinline
func run(k *kind) {
	for {
		k.step(k)
	}
}

func answer() {
	for {
		reply <- <-request + 1
	}
}

func main() {
	seconds := 3600
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	zero, _ = os.Open("/dev/zero")
	for i := 0; i < 200; i++ {
		keys = append(keys, strings.Repeat("k", i)+strconv.Itoa(i))
		names[keys[i]] = i
	}
	go answer()
	kinds = append(kinds, cgoKinds...)
	told.Add(len(kinds))
	for _, k := range kinds {
		k := k
		go func() { run(k) }()
	}
	told.Wait()
	fmt.Println("ready")
	close(start)
	time.Sleep(time.Duration(seconds) * time.Second)
}
