package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"testing"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/allocs"
)

// acceptAll is a Pusher that accepts every push.
type acceptAll struct{ Pusher }

func (acceptAll) PushBatch(_ context.Context, pushes []delivery.Push) {
	for i := range pushes {
		pushes[i].Channel = delivery.ChannelResult{ID: 735325130218600, Servers: 2}
	}
}

// discardWriter is a ResponseWriter that keeps the status only.
type discardWriter struct {
	header http.Header
	status int
}

func (a *discardWriter) Header() http.Header         { return a.header }
func (a *discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (a *discardWriter) WriteHeader(status int)      { a.status = status }

func hot() []allocs.Case {
	open := namespace.Open()
	h := New(Options{
		Pusher: acceptAll{}, Authorize: func(string, string) (*limit.SharedBucket, error) { return nil, nil }, Namespaces: func() *namespace.Set { return open },
		MaxMessage: 1 << 16, CallLimits: CallLimits{Batch: 1000, Targets: 10_000}, CountPush: func(string, string) {},
	})
	post := func(path string, body []byte) func() {
		u, reader, w := &url.URL{Path: path}, bytes.NewReader(nil), &discardWriter{header: make(http.Header)}
		return func() {
			reader.Reset(body)
			w.status = 0
			h.ServeHTTP(w, &http.Request{
				Method: http.MethodPost, URL: u, Host: "127.0.0.1", Header: http.Header{}, Body: io.NopCloser(reader), ContentLength: int64(len(body)),
			})
			if w.status != http.StatusOK {
				panic(w.status)
			}
		}
	}
	one := []byte(`{"channel":"news","data":{"text":"a message of an ordinary size, about ninety bytes"}}`)
	change := []byte(`{"channel":"room:7","set":{"seat/7":{"text":"a value of an ordinary size, about ninety bytes in total"}}}`)
	hundred := []byte(`{"messages":[` + string(bytes.Join(repeat(one, 100), []byte(","))) + `]}`)
	var responseBuf []byte
	pushDirectly := func(path string, body []byte) func() {
		return func() {
			a := h.Push(path, "", body, responseBuf[:0])
			if responseBuf = a.Body; a.Status != http.StatusOK {
				panic(a.Status)
			}
		}
	}
	return []allocs.Case{
		allocs.Of("push", 9, post("/v1/push", one)),
		allocs.Of("batch of 100", 206, post("/v1/push/batch", hundred)),
		allocs.Of("push without net/http", 3, pushDirectly(PathPush, one)),
		allocs.Of("change without net/http", 10, pushDirectly(PathPush, change)),
		allocs.Of("batch of 100 without net/http", 200, pushDirectly(PathBatch, hundred)),
	}
}

func repeat(p []byte, n int) (list [][]byte) {
	for range n {
		list = append(list, p)
	}
	return list
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
