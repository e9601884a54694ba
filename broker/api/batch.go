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
func (a api) batch(ctx context.Context, b body, dst []byte, by *limit.SharedBucket) Answer {
	space := spaces.Get().(*batchSpace)
	answer := a.batchIn(ctx, space, b, dst, by)
	space.free() // not after a panic: others may still be at it
	return answer
}

func (a api) batchIn(ctx context.Context, space *batchSpace, b body, dst []byte, by *limit.SharedBucket) Answer {
	requests, err := a.readBatch(b, space.requests[:0])
	if err != nil {
		return a.failed(err)
	}
	space.grow(requests)
	pushes, answers, ones := space.pushes, space.answers, space.ones
	for i := range requests {
		req := &requests[i]
		var err error
		if req.plain() {
			var data []byte
			if data, err = a.data(req.onePush); err == nil {
				answers[i].Results = ones[i : i+1 : i+1]
				pushes = a.addOne(pushes, req.target, delivery.Payload{Data: data}, &ones[i])
			}
		} else if err = req.err; err != nil {
			err = inMessage(i, err)
		} else {
			var p plan
			if p, err = a.check(*req.long); err == nil {
				pushes, answers[i].Results = a.add(pushes, p)
			}
		}
		if err != nil {
			answers[i].Error = a.refusal(err)
		}
	}
	if err := a.spend(by, pushes); err != nil {
		return a.failed(err)
	}
	a.deliver(ctx, pushes)
	for rest, i := pushes, 0; i < len(answers); i++ {
		rest = a.finish(answers[i].Results, rest)
	}
	return answered(answers, dst)
}

// batchSpace is what a batch is worked out in. It is kept for the next: of a batch of a hundred it is 45 KB, which
// nobody but its own goroutine has when the answer is written.
type batchSpace struct {
	requests []batched
	pushes   []delivery.Push // empty
	answers  []pushed        // of each request
	ones     []result        // of those that are plain
}

var spaces = sync.Pool{New: func() any { return new(batchSpace) }}

// maxKeptBatch is the longest batch whose space is kept.
const maxKeptBatch = 256

// grow makes room for what is to be done with requests.
func (s *batchSpace) grow(requests []batched) {
	n := len(requests)
	s.requests = requests
	s.pushes = slices.Grow(s.pushes[:0], n)
	s.answers, s.ones = slices.Grow(s.answers[:0], n)[:n], slices.Grow(s.ones[:0], n)[:n]
}

// free forgets what was in it.
func (s *batchSpace) free() {
	if cap(s.requests) > maxKeptBatch {
		return
	}
	clear(s.requests[:cap(s.requests)]) // also what was read of one that failed
	clear(s.pushes[:cap(s.pushes)])     // the caller appended
	clear(s.answers)
	clear(s.ones)
	spaces.Put(s)
}

// batched is one push of a batch: a plain one, or another, or what is wrong with it alone.
type batched struct {
	onePush
	long *pushRequest
	err  error
}

func (b *batched) plain() bool { return b.long == nil && b.err == nil }

// readBatch reads the body of a batch behind dst, which is empty.
func (a api) readBatch(b body, dst []batched) ([]batched, error) {
	if requests, plain, err := plainBatch(dst, b.whole(), a.MaxBatch, a.MaxTargets); plain {
		return requests, err
	}
	long := struct {
		Messages messageList `json:"messages"`
	}{messageList{most: a.MaxBatch}}
	if err := read(b.reader(), &long); err != nil {
		return nil, err
	}
	if len(long.Messages.items) == 0 {
		return nil, wire.Errorf(wire.BadRequest, "messages: none, between 1 and %d are allowed", a.MaxBatch)
	}
	targets := tally{most: a.MaxTargets}
	for i, text := range long.Messages.items {
		m := longPush(text)
		if err := targets.add(i, &m); err != nil {
			return nil, err
		}
		dst = append(dst, m)
	}
	return dst, nil
}

// longPush reads a push that is JSON.
func longPush(text []byte) batched {
	req, err := decodePush(text)
	return batched{long: &req, err: err}
}

// messageList is the messages of a batch. Reading ends behind as many as are allowed: a body of 16 MiB has room for five
// million empty ones, which took 2.7 GB and most of a minute before they were counted.
type messageList struct {
	most  int
	items []json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *messageList) UnmarshalJSON(text []byte) error {
	if l.items = nil; string(text) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return wire.Errorf(wire.BadRequest, "messages: they are no list")
	}
	for d.More() {
		if len(l.items) == l.most {
			return wire.Errorf(wire.BadRequest, "messages: more than %d pushes", l.most)
		}
		var item json.RawMessage
		if err := d.Decode(&item); err != nil {
			return err
		}
		l.items = append(l.items, item)
	}
	return nil
}
