package system

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"switchboard/internal/testbed"
)

// StateField is the field that the publishers of a system with state change. Its value is the
// payload.
const StateField = "seat/7"

// StatePublisher is implemented by a [Publisher] of a system whose channels have fields.
type StatePublisher interface {
	// Fill sets the fields of a channel to one value.
	Fill(ctx context.Context, channel string, fields []string, value []byte) error
	// ReadState reads all fields of a channel and returns their number.
	ReadState(ctx context.Context, channel string) (fields int, err error)
}

// StoreOnly is implemented by a Running that has no subscribers: publishers write to the store.
type StoreOnly interface {
	// StoreOnly does nothing.
	StoreOnly()
}

// HeapReader is implemented by a Running that reports its heap.
type HeapReader interface {
	// Heap collects garbage and returns the bytes in use by the heap and by stacks. It needs
	// Setup.Heap, or returns errors.ErrUnsupported.
	Heap(ctx context.Context) (heap, stacks float64, err error)
}

// maxSet is the broker's limit of changes in a push.
const maxSet = 64

// Fill implements [StatePublisher].
func (p *switchboardPublisher) Fill(ctx context.Context, channel string, fields []string, value []byte) error {
	for some := range slices.Chunk(fields, maxSet) {
		p.body = fmt.Appendf(p.body[:0], `{"channel":%q,"set":{`, channel)
		for i, field := range some {
			if i > 0 {
				p.body = append(p.body, ',')
			}
			p.body = append(append(strconv.AppendQuote(p.body, field), ':'), value...)
		}
		p.body = append(p.body, "}}"...)
		if _, err := p.conn.Post(ctx, "/v1/push", jsonHeader, p.body); err != nil {
			return err
		}
	}
	return nil
}

// ReadState implements [StatePublisher].
func (p *switchboardPublisher) ReadState(ctx context.Context, channel string) (fields int, err error) {
	page, err := p.conn.Get(ctx, "/v1/channels/"+channel+"/state")
	return bytes.Count(page, []byte(`":[`)), err // each field is "name":[id,value]
}

// collections is the number of garbage collections before a heap is read: a sync.Pool keeps what it
// has for one collection.
const collections = 3

// Heap implements [HeapReader].
func (r *switchboard) Heap(ctx context.Context) (heap, stacks float64, err error) {
	for _, in := range r.instances {
		if err := in.addHeap(ctx, &heap, &stacks); err != nil {
			return 0, 0, err
		}
	}
	return heap, stacks, nil
}

// addHeap collects garbage through the pprof listener and adds the bytes in use.
func (in *instance) addHeap(ctx context.Context, heap, stacks *float64) error {
	if in.pprof == "" {
		return errors.ErrUnsupported
	}
	profiler, err := DialHTTP(in.pprof)
	if err != nil {
		return err
	}
	defer profiler.Close()
	for range collections {
		if _, err := profiler.Get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		name string
		sum  *float64
	}{{"go_memstats_heap_alloc_bytes", heap}, {"go_memstats_stack_inuse_bytes", stacks}} { // the heap first: each reading adds to it
		value, err := testbed.API{HTTP: in.http}.Metric(ctx, m.name)
		if err != nil {
			return err
		}
		*m.sum += value
	}
	return nil
}

// Fill implements [StatePublisher].
func (p *centrifugePublisher) Fill(ctx context.Context, channel string, fields []string, value []byte) error {
	body, err := json.Marshal(map[string]any{"keys": fields, "data": json.RawMessage(value)})
	if err == nil {
		_, err = p.Post(ctx, "/map/"+channel, jsonHeader, body)
	}
	return err
}

// ReadState implements [StatePublisher].
func (p *centrifugePublisher) ReadState(ctx context.Context, channel string) (fields int, err error) {
	page, err := p.Get(ctx, "/map/"+channel)
	return bytes.Count(page, []byte(`{"offset":`)), err // the offset of the map is the last member
}

// Heap implements [HeapReader].
func (r *centrifuge) Heap(ctx context.Context) (heap, stacks float64, err error) {
	conn, err := DialHTTP(r.addr)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	answer, err := conn.Post(ctx, "/heap", "", nil)
	if err != nil {
		return 0, 0, err
	}
	var m struct{ Heap float64 }
	err = json.Unmarshal(answer, &m)
	return m.Heap, 0, err
}
