// SPDX-License-Identifier: Apache-2.0

// gohttp serve: an HTTP server. Prints `address HOST:PORT` and `ready`. /work?n=N calls functions that
// recurse (so that stacks grow and move), panic and recover, and answers with a number that N determines;
// /stats says what the runtime knows of itself.
//
// gohttp load HOST:PORT RATE CONNECTIONS: asks for /work RATE times a second and checks each answer. Prints
// `ready`, and for each line on standard input one line of JSON about the requests since the line before.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"time"
)

// ---- the server -----------------------------------------------------------------------------------

type answer struct {
	N, Sum int
	Text   string
}

//go:noinline
func descend(n int) int {
	var room [256]byte
	room[n%256] = byte(n)
	if n <= 0 {
		return 0
	}
	return descend(n-1) + int(room[n%256]) - n%256 + 1
}

//go:noinline
func fails(n int) {
	if n%7 == 0 {
		panic(n)
	}
}

//go:noinline
func guarded(n int) (failed int) {
	defer func() {
		if recover() != nil {
			failed = 1
		}
	}()
	fails(n)
	return 0
}

//go:noinline
func compute(n int) int {
	result := make(chan int)
	go func() { result <- descend(n % 500) }()
	return <-result + guarded(n)
}

func expected(n int) int {
	sum := n % 500
	if n%7 == 0 {
		sum++
	}
	return sum
}

func work(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	json.NewEncoder(w).Encode(answer{n, compute(n), r.UserAgent()})
}

func stats(w http.ResponseWriter, r *http.Request) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	json.NewEncoder(w).Encode(map[string]uint64{
		"goroutines": uint64(runtime.NumGoroutine()), "heap": m.HeapInuse, "stacks": m.StackInuse})
}

func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	http.HandleFunc("/work", work)
	http.HandleFunc("/stats", stats)
	fmt.Printf("address %s\nready\n", listener.Addr())
	return http.Serve(listener, nil)
}

// ---- the load -------------------------------------------------------------------------------------

type tally struct {
	mutex  sync.Mutex
	ns     []int64
	wrong  int
	errors []string
}

func (t *tally) add(ns int64, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err == nil {
		t.ns = append(t.ns, ns)
		return
	}
	t.wrong++
	if len(t.errors) < 3 {
		t.errors = append(t.errors, err.Error())
	}
}

func ask(client *http.Client, address string, n int) error {
	r, err := client.Get(fmt.Sprintf("http://%s/work?n=%d", address, n))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var a answer
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		return err
	}
	io.Copy(io.Discard, r.Body)
	if a.N != n || a.Sum != expected(n) {
		return fmt.Errorf("%d: %+v", n, a)
	}
	return nil
}

func (t *tally) run(address string, first, step int, pause time.Duration) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	for n := first; ; n += step {
		began := time.Now()
		err := ask(client, address, n)
		took := time.Since(began)
		t.add(took.Nanoseconds(), err)
		time.Sleep(pause - took)
	}
}

func (t *tally) report() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	sort.Slice(t.ns, func(i, j int) bool { return t.ns[i] < t.ns[j] })
	share := func(percent int) int64 {
		if len(t.ns) == 0 {
			return 0
		}
		return t.ns[(len(t.ns)-1)*percent/100]
	}
	err := json.NewEncoder(os.Stdout).Encode(map[string]any{"requests": len(t.ns), "wrong": t.wrong,
		"errors": t.errors, "p50_ns": share(50), "p99_ns": share(99), "max_ns": share(100)})
	t.ns, t.wrong, t.errors = nil, 0, nil
	return err
}

func load(address, rate, connections string) error {
	r, err := strconv.Atoi(rate)
	if err != nil {
		return err
	}
	c, err := strconv.Atoi(connections)
	if err != nil {
		return err
	}
	var t tally
	for i := 0; i < c; i++ {
		go t.run(address, i, c, time.Second*time.Duration(c)/time.Duration(r))
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := t.report(); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		err = serve()
	case len(os.Args) == 5 && os.Args[1] == "load":
		err = load(os.Args[2], os.Args[3], os.Args[4])
	default:
		err = fmt.Errorf("gohttp serve | load HOST:PORT RATE CONNECTIONS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
