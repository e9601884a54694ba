package api

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// batch answers PathBatch.
func (a api) batch(ctx context.Context, b body, dst []byte, rate *limit.SharedBucket) Answer {
	buffers := batchBufferPool.Get().(*batchBuffers)
	answer := a.runBatch(ctx, buffers, b, dst, rate)
	buffers.free() // not after a panic, when other goroutines may still use it
	return answer
}

func (a api) runBatch(ctx context.Context, buffers *batchBuffers, b body, dst []byte, rate *limit.SharedBucket) Answer {
	requests, err := a.readBatch(b, buffers.requests[:0])
	if err != nil {
		return a.errorAnswer(err)
	}
	buffers.grow(requests)
	pushes, answers, simple := buffers.pushes, buffers.answers, buffers.simpleResults
	for i := range requests {
		req := &requests[i]
		var err error
		if req.isSimple() {
			var data []byte
			if data, err = a.payload(req.simplePush); err == nil {
				answers[i].Results = simple[i : i+1 : i+1]
				pushes = a.appendPush(pushes, req.target, delivery.Payload{Data: data}, nil, &simple[i])
			}
		} else if err = req.err; err == nil {
			var p checkedPush
			if p, err = a.checkRequest(*req.full); err == nil {
				pushes, answers[i].Results = a.appendPushes(pushes, p)
			}
		}
		if err != nil {
			answers[i].Error = a.toErrorBody(inMessage(i, err))
		}
		for k := range answers[i].Results {
			answers[i].Results[k].Error.inMessage(i)
		}
	}
	if err := a.takeRate(rate, pushes); err != nil {
		return a.errorAnswer(err)
	}
	a.deliver(ctx, pushes)
	rest, shown := pushes, 0
	for i := range answers {
		rest = a.fillResults(answers[i].Results, rest, &shown)
	}
	return batchAnswer(answers, dst)
}

// batchBuffers holds the slices that answering a batch needs: 45 KB for a batch of 100. They are
// reused for another batch after the answer.
type batchBuffers struct {
	requests      []batchItem
	pushes        []delivery.Push // its length stays 0: runBatch appends into its capacity
	answers       []pushResponse  // one for each request
	simpleResults []result        // one for each request; only simple pushes use theirs
}

var batchBufferPool = sync.Pool{New: func() any { return new(batchBuffers) }}

// maxKeptBatch is the longest batch whose buffers are kept.
const maxKeptBatch = 256

// grow sets requests and makes room for their pushes, answers and results.
func (s *batchBuffers) grow(requests []batchItem) {
	n := len(requests)
	s.requests = requests
	s.pushes = slices.Grow(s.pushes[:0], n)
	s.answers, s.simpleResults = slices.Grow(s.answers[:0], n)[:n], slices.Grow(s.simpleResults[:0], n)[:n]
}

// free clears the buffers and returns them to the pool.
func (s *batchBuffers) free() {
	if cap(s.requests) > maxKeptBatch {
		return
	}
	clear(s.requests[:cap(s.requests)]) // also the requests of a batch that failed
	clear(s.pushes[:cap(s.pushes)])     // up to its capacity, since its length is 0
	clear(s.answers)
	clear(s.simpleResults)
	batchBufferPool.Put(s)
}

// batchItem is one push of a batch: a simple push, or one that scanPush or encoding/json has read.
type batchItem struct {
	simplePush
	full *pushRequest // nil for a simple push
	err  error        // why this push cannot be read; the others of the batch can still be stored
}

func (b *batchItem) isSimple() bool { return b.full == nil && b.err == nil }

// readBatch reads the body of a batch and appends its pushes to dst, which has length 0.
func (a api) readBatch(b body, dst []batchItem) ([]batchItem, error) {
	counter := callCounter{targets: a.Targets, operations: a.Fields.Operations}
	if requests, ok, err := scanBatch(dst, b.whole(), a.Batch, counter); ok {
		return requests, err
	}
	batch := struct {
		Messages messageList `json:"messages" required:"true"`
	}{messageList{limit: a.Batch}}
	if err := b.decode(&batch); err != nil {
		return nil, err
	}
	if len(batch.Messages.items) == 0 {
		return nil, wire.Errorf(wire.BadRequest, "messages: none, between 1 and %d are allowed", a.Batch)
	}
	for i, text := range batch.Messages.items {
		m := fullItem(text)
		if err := counter.add(i, &m); err != nil {
			return nil, err
		}
		dst = append(dst, m)
	}
	return dst, nil
}

// fullItem reads a push, which is valid JSON, by encoding/json.
func fullItem(text []byte) batchItem {
	req, err := decodePush(text)
	return batchItem{full: &req, err: err}
}

// messageList is the messages of a batch. Reading ends at the limit: a body of 16 MiB has room for
// five million empty messages. Reading all of them took 2.7 GB and most of a minute.
type messageList struct {
	limit int
	items []json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *messageList) UnmarshalJSON(text []byte) error {
	if l.items = nil; string(text) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return wire.Errorf(wire.BadRequest, "messages: not a list")
	}
	for d.More() {
		if len(l.items) == l.limit {
			return wire.Errorf(wire.BadRequest, "messages: more than %d pushes", l.limit)
		}
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return err
		}
		l.items = append(l.items, item)
	}
	return nil
}
