package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"switchboard/internal/testbed"
)

// payload is the data of every message.
type payload struct {
	Stream string `json:"stream"`
	N      int    `json:"n"`
	Pad    string `json:"pad,omitempty"`
}

// pushRequest is one push to make.
type pushRequest struct {
	stream  stream
	n       int
	durable bool
}

func (r pushRequest) body() map[string]any {
	pad := 0
	if r.n%8 == 0 {
		pad = paddingKiB << 10
	}
	body := map[string]any{
		"data": payload{r.stream.name, r.n, strings.Repeat("x", pad)},
		"key":  fmt.Sprintf("%s/%d", r.stream.name, r.n),
	}
	for k, v := range r.stream.target {
		body[k] = v
	}
	if r.durable {
		body["durable"] = true
	}
	return body
}

// pushResult is the part of a push's answer that the journal needs.
type pushResult struct {
	ID      int64
	Clients []struct {
		Client string
		ID     int64
	}
	Error *struct{ Code string }
}

// ids returns the message id by client: the channel's id for all, or each client's own.
func (r pushResult) ids(s stream) map[string]int64 {
	ids := map[string]int64{}
	if r.ID != 0 {
		for _, client := range s.to {
			ids[client] = r.ID
		}
	}
	for _, c := range r.Clients {
		ids[c.Client] = c.ID
	}
	return ids
}

var errNoAnswer = errors.New("no answer")

// refusal is an answer that does not accept a push. The status is 0 if the answer lacks
// results.
type refusal struct{ status int }

func (r refusal) Error() string { return fmt.Sprint("status ", r.status) }

type pushResponse struct{ Results []pushResult }

// post sends the pushes in one call: a single push, or a batch.
func (p *publisher) post(ctx context.Context, broker string, requests []pushRequest) ([]pushResult, error) {
	if len(requests) == 1 {
		var one pushResponse
		err := p.call(ctx, broker, "/v1/push", requests[0].body(), &one)
		if err == nil && len(one.Results) != 1 {
			err = refusal{}
		}
		return one.Results, err
	}
	var messages []map[string]any
	for _, r := range requests {
		messages = append(messages, r.body())
	}
	var many struct {
		Results []struct {
			Results []pushResult
			Error   *struct{ Code string }
		}
	}
	err := p.call(ctx, broker, "/v1/push/batch", map[string]any{"messages": messages}, &many)
	if err != nil {
		return nil, err
	}
	out := make([]pushResult, len(requests))
	for i := range requests {
		switch {
		case i >= len(many.Results):
			return nil, refusal{}
		case many.Results[i].Error != nil:
			out[i].Error = many.Results[i].Error
		case len(many.Results[i].Results) == 1:
			out[i] = many.Results[i].Results[0]
		default:
			return nil, refusal{}
		}
	}
	return out, nil
}

func (p *publisher) call(ctx context.Context, broker, path string, body, into any) error {
	status, text, err := p.roundTrip(ctx, broker, path, body)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return refusal{status}
	}
	return json.Unmarshal([]byte(text), into)
}

// roundTrip posts a body as JSON and returns the answer. The error is errNoAnswer if no answer
// arrived.
func (p *publisher) roundTrip(ctx context.Context, broker, path string, body any) (status int, text string, err error) {
	api := testbed.API{HTTP: broker, Client: &p.http}
	if status, text, err = api.Do(ctx, http.MethodPost, path, body); err != nil {
		err = errNoAnswer
	}
	return status, text, err
}
