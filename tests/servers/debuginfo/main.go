// SPDX-License-Identifier: Apache-2.0

// A stand-in for Parca where none is built: accepts profiles unread, and debug information as strictly as
// Parca v0.28.0's own store, into files of the same names. It needs the standard library only: gRPC is
// HTTP/2 with five bytes before each message, and the messages here have a handful of fields.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	ok                 = 0
	invalidArgument    = 3
	failedPrecondition = 9
	internal           = 13
	maxMessage         = 64 << 20
)

type status struct {
	code int
	text string
}

func (s status) Error() string { return s.text }

func refuse(code int, format string, args ...any) error {
	return status{code, fmt.Sprintf(format, args...)}
}

// ---- protobuf -------------------------------------------------------------------------------

// fields maps field numbers of a message to values; the last one counts.
type fields map[uint64]any // uint64 or []byte

func parse(b []byte) (fields, error) {
	f := fields{}
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errors.New("no field")
		}
		b = b[n:]
		value, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errors.New("no number")
		}
		b = b[n:]
		switch key & 7 {
		case 0:
			f[key>>3] = value
		case 2:
			if value > uint64(len(b)) {
				return nil, errors.New("a field runs past its message")
			}
			f[key>>3] = b[:value]
			b = b[value:]
		default:
			return nil, fmt.Errorf("wire type %d", key&7)
		}
	}
	return f, nil
}

func (f fields) text(number uint64) string {
	b, _ := f[number].([]byte)
	return string(b)
}

func (f fields) number(number uint64) uint64 {
	n, _ := f[number].(uint64)
	return n
}

func number(field, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, field<<3), value)
}

func bytes(field uint64, value []byte) []byte {
	b := binary.AppendUvarint(nil, field<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// ---- the store --------------------------------------------------------------------------------

type upload struct {
	id, hash   string
	size, came uint64
	finished   bool
}

type store struct {
	dir, fault string
	mu         sync.Mutex
	uploads    map[string]*upload
	profiles   int
	questions  int
}

func (s *store) write(buildID, state string) error {
	text := fmt.Sprintf("{\"buildId\": %q, \"upload\": {\"state\": %q}}\n", buildID, state)
	if err := os.MkdirAll(filepath.Join(s.dir, buildID), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, buildID, "metadata"), []byte(text), 0o644)
}

func checkBuildID(id string) error {
	if len(id) <= 2 || strings.Trim(id, "0123456789abcdef") != "" {
		return refuse(invalidArgument, "no build ID: %q", id)
	}
	return nil
}

func (s *store) shouldInitiate(f fields) ([]byte, error) {
	s.questions++
	if err := checkBuildID(f.text(1)); err != nil {
		return nil, err
	}
	u := s.uploads[f.text(1)]
	if u == nil {
		return append(number(1, 1), bytes(2, []byte("First time"))...), nil
	}
	if !u.finished {
		return bytes(2, []byte("A previous upload is still in-progress")), nil
	}
	return bytes(2, []byte("Debuginfo already exists")), nil
}

func (s *store) initiate(f fields) ([]byte, error) {
	id := f.text(1)
	if err := checkBuildID(id); err != nil {
		return nil, err
	}
	if f.text(3) == "" || f.number(2) == 0 || f.number(2) > 1e9 {
		return nil, refuse(invalidArgument, "hash and size must be set")
	}
	if s.uploads[id] != nil {
		return nil, refuse(failedPrecondition, "should not have been attempted")
	}
	u := &upload{id: "upload-of-" + id, hash: f.text(3), size: f.number(2)}
	s.uploads[id] = u
	instructions := append(bytes(1, []byte(id)), bytes(2, []byte(u.id))...)
	return bytes(1, append(instructions, number(3, 1)...)), s.write(id, "STATE_UPLOADING")
}

func (s *store) find(buildID, uploadID string) (*upload, error) {
	u := s.uploads[buildID]
	if u == nil {
		return nil, refuse(failedPrecondition, "not previously initiated: %q", buildID)
	}
	if u.id != uploadID {
		return nil, refuse(invalidArgument, "the upload ID does not match: %q", uploadID)
	}
	return u, nil
}

func (s *store) finish(f fields) ([]byte, error) {
	u, err := s.find(f.text(1), f.text(2))
	if err != nil {
		return nil, err
	}
	if u.came != u.size {
		return nil, refuse(invalidArgument, "%d bytes of %d", u.came, u.size)
	}
	u.finished = true
	return nil, s.write(f.text(1), "STATE_UPLOADED")
}

// The file, message by message: only what happens between two of them needs the lock.
func (s *store) upload(body io.Reader) ([]byte, error) {
	first, err := message(body)
	if err != nil {
		return nil, err
	}
	info, err := parse(first.bytes(1))
	if err != nil || len(info) == 0 {
		return nil, refuse(invalidArgument, "the first message is no info")
	}
	s.mu.Lock()
	u, err := s.find(info.text(1), info.text(2))
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(s.dir, info.text(1), "debuginfo"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	var came uint64
	for {
		f, err := message(body)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if s.fault == "reset" {
			panic(http.ErrAbortHandler)
		}
		if len(f.bytes(2)) == 0 {
			return nil, refuse(invalidArgument, "a message without chunk_data")
		}
		n, err := out.Write(f.bytes(2))
		came += uint64(n)
		if err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	u.came = came
	s.mu.Unlock()
	return append(bytes(1, []byte(info.text(1))), number(2, came)...), nil
}

// ---- gRPC -------------------------------------------------------------------------------------

func (f fields) bytes(number uint64) []byte {
	b, _ := f[number].([]byte)
	return b
}

func message(body io.Reader) (fields, error) {
	var head [5]byte
	if n, err := io.ReadFull(body, head[:]); err != nil {
		if n > 0 {
			return nil, refuse(internal, "half a message")
		}
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || size > maxMessage {
		return nil, refuse(internal, "compressed, or too large: % x", head)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(body, b); err != nil {
		return nil, refuse(internal, "half a message")
	}
	return parse(b)
}

func (s *store) one(body io.Reader, call func(fields) ([]byte, error)) ([]byte, error) {
	f, err := message(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return call(f)
}

func (s *store) call(path string, body io.Reader) ([]byte, error) {
	service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if service == "parca.profilestore.v1alpha1.ProfileStoreService" && method == "WriteRaw" {
		return s.one(body, func(fields) ([]byte, error) { s.profiles++; return nil, nil })
	}
	if service != "parca.debuginfo.v1alpha1.DebuginfoService" {
		return nil, refuse(12, "unknown service %s", service)
	}
	switch method {
	case "ShouldInitiateUpload":
		return s.one(body, s.shouldInitiate)
	case "InitiateUpload":
		return s.one(body, s.initiate)
	case "Upload":
		return s.upload(body)
	case "MarkUploadFinished":
		return s.one(body, s.finish)
	}
	return nil, refuse(12, "unknown method %s", method)
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/metrics" {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(w, "profiles %d\nquestions %d\n", s.profiles, s.questions)
		return
	}
	if r.ProtoMajor != 2 || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("TE") != "trailers" {
		http.Error(w, "gRPC is wanted", http.StatusUnsupportedMediaType)
		return
	}
	debuginfo := strings.Contains(r.URL.Path, "DebuginfoService")
	if debuginfo && s.fault == "503" {
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	answer, err := s.call(r.URL.Path, r.Body)
	if debuginfo && s.fault == "endless" {
		for zeros := make([]byte, 1<<16); ; {
			if _, err := w.Write(zeros); err != nil {
				return
			}
		}
	}
	code, text := ok, ""
	if err != nil {
		code, text = internal, err.Error()
		if s, is := err.(status); is {
			code = s.code
		}
		log.Printf("%s: %d %s", r.URL.Path, code, text)
	} else {
		head := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(answer)))
		w.Write(append(head, answer...))
	}
	// Only after the header has been sent.
	http.NewResponseController(w).Flush()
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", fmt.Sprint(code))
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", text)
}

func main() {
	address := flag.String("http-address", "127.0.0.1:7070", "")
	s := &store{uploads: map[string]*upload{}}
	flag.StringVar(&s.dir, "dir", "data", "")
	flag.StringVar(&s.fault, "fault", "", "503, reset (in the middle of an upload) or endless (answers)")
	flag.Parse()
	server := http.Server{Addr: *address, Handler: s, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	log.Fatal(server.ListenAndServe())
}
