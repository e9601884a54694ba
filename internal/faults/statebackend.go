package main

import (
	"context"
	"encoding/json"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

const backendName = "the-backend"

// stateBackend is a backend that changes states over HTTP. It repeats an update under the same key
// until it is accepted or refused by the state.
type stateBackend struct {
	publisher *publisher
	journal   *stateJournal
	known     map[string]int64 // ids of fields, from its own updates and from refusals
}

// updateAnswer is the answer to a push that changes fields.
type updateAnswer struct {
	Results []struct {
		ID     int64
		Fields map[string]int64
	}
	Error *struct {
		Code   wire.ErrorCode
		Fields json.RawMessage
		Group  string
		Max    int
	}
}

// update makes an update and records it.
func (b *stateBackend) update(ctx context.Context, u update, key string) {
	call := updateCall{update: u, by: backendName, durable: b.publisher.durable, firstTry: time.Now()}
	for ctx.Err() == nil {
		at := b.publisher.nextBroker()
		call.began = time.Now()
		answer, err := b.post(ctx, b.publisher.brokers[at], u.body(key, call.durable))
		call.ended = time.Now()
		switch {
		case err != nil:
			b.publisher.avoid(at)
		case answer.Error == nil && len(answer.Results) == 1:
			call.id, call.numbers = answer.Results[0].ID, answer.Results[0].Fields
			b.accepted(call)
			return
		case answer.Error == nil || !passingCodes[answer.Error.Code]:
			b.refused(call, answer)
			return
		}
		_ = await.Pause(ctx, pushRetryDelay)
	}
}

func (b *stateBackend) accepted(call updateCall) {
	for field := range call.set {
		b.known[field] = call.id
	}
	for _, field := range call.del {
		delete(b.known, field)
	}
	b.journal.updated(call)
}

func (b *stateBackend) refused(call updateCall, answer updateAnswer) {
	call.refusal = &stateRefusal{code: "an answer without a result"}
	if e := answer.Error; e != nil {
		fields, err := parseShownFields(e.Fields)
		if call.refusal = (&stateRefusal{code: e.Code, group: e.Group, max: e.Max, fields: fields}); err != nil {
			call.refusal.code = wire.ErrorCode(err.Error())
		}
	}
	for field, shown := range call.refusal.fields {
		if delete(b.known, field); shown != nil {
			b.known[field] = shown.ID
		}
	}
	b.journal.refused(call)
}

func parseShownFields(text json.RawMessage) (map[string]*state.Shown, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return state.ParseFields(text)
}

// post makes a push, which may be refused. The error is errNoAnswer if no answer arrived, or none
// in JSON.
func (b *stateBackend) post(ctx context.Context, broker string, body map[string]any) (answer updateAnswer, err error) {
	_, text, err := b.publisher.roundTrip(ctx, broker, "/v1/push", body)
	if err == nil && json.Unmarshal([]byte(text), &answer) != nil {
		err = errNoAnswer
	}
	return answer, err
}
