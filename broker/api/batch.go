package api

import (
	"bytes"
	"context"
	"encoding/json"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// batch answers PathBatch.
func (a api) batch(ctx context.Context, b body, dst []byte, by *limit.Shared) Answer {
	requests, err := a.readBatch(b)
	if err != nil {
		return a.failed(err)
	}
	pushes := make([]delivery.Push, 0, len(requests))
	answers := make([]pushed, len(requests))
	ones := make([]result, len(requests)) // of the plain ones
	for i := range requests {
		req := &requests[i]
		var err error
		if req.plain() {
			var data []byte
			if data, err = a.data(req.onePush); err == nil {
				pushes, answers[i].Results = a.addOne(pushes, req.target, delivery.Payload{Data: data}, ones[i:i+1:i+1])
			}
		} else if err = req.err; err == nil {
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

// batched is one push of a batch: a plain one, or another, or what is wrong with it alone.
type batched struct {
	onePush
	long *pushRequest
	err  error
}

func (b *batched) plain() bool { return b.long == nil && b.err == nil }

// readBatch reads the body of a batch.
func (a api) readBatch(b body) ([]batched, error) {
	if requests, plain := plainBatch(b.whole(), a.MaxBatch); plain {
		return requests, nil
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
	requests := make([]batched, len(long.Messages.items))
	for i, text := range long.Messages.items {
		requests[i] = longPush(text)
	}
	return requests, nil
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
