package backend_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/backend"
)

func TestPush(t *testing.T) {
	sb, address := start(t)
	connect(t, address, "alice", "phone", "news")

	results, err := sb.Push(t.Context(), backend.Push{Channel: "news", Data: map[string]string{"title": "hi"}, Key: "k"})
	if err != nil || results.Err() != nil || len(results) != 1 || results[0].Channel != "news" || results[0].ID == 0 || *results[0].Servers != 1 {
		t.Fatalf("%+v, %v", results, err)
	}
	again, err := sb.Push(t.Context(), backend.Push{Channel: "news", Data: 2, Key: "k"})
	if err != nil || !again[0].Duplicate || again[0].ID != results[0].ID {
		t.Errorf("the same key: %+v, %v", again, err)
	}
	results, err = sb.Push(t.Context(), backend.Push{User: "alice", Data: 1, TTL: time.Hour, First: true})
	if err != nil || len(results[0].Clients) != 1 || results[0].Clients[0].Client != "alice/phone" || !results[0].Clients[0].Online {
		t.Errorf("a user: %+v, %v", results, err)
	}
	results, err = sb.Push(t.Context(), backend.Push{User: "nobody", Data: 1})
	if err != nil || results[0].Clients == nil || len(results[0].Clients) != 0 {
		t.Errorf("a user without clients: %+v, %v", results, err)
	}
	results, err = sb.Push(t.Context(), backend.Push{Client: "bob/tab", Data: json.RawMessage("null")})
	if err != nil || results[0].Online == nil || *results[0].Online {
		t.Errorf("a client that is offline: %+v, %v", results, err)
	}
	if results, err = sb.Push(t.Context(), backend.Push{All: true, Data: "noon"}); err != nil || !results[0].All {
		t.Errorf("all: %+v, %v", results, err)
	}

	results, err = sb.Push(t.Context(), backend.Push{Channels: []string{"news", "a b"}, Data: 1})
	refused, ok := errors.AsType[*backend.Error](results.Err())
	if err != nil || !ok || refused.Code != client.BadRequest || results[0].Error != nil {
		t.Errorf("a bad channel among two: %+v, %v", results, err)
	}
	_, err = sb.Push(t.Context(), backend.Push{Channel: "a b", Data: 1})
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Code != client.BadRequest {
		t.Errorf("a bad channel: %v", err)
	}
}

func TestChangesOfFields(t *testing.T) {
	sb, _ := start(t)
	least := int64(0)
	results, err := sb.Push(t.Context(), backend.Push{
		Channel: "room:7", Set: map[string]any{"turn": "amy", "seat/A1": 1}, TTL: time.Hour,
		Add: map[string]any{"moves": backend.Addition{By: 2, Min: &least}}, If: map[string]any{"turn": 0},
	})
	if err != nil || results[0].Fields["moves"] != 2 {
		t.Fatalf("%+v, %v", results, err)
	}
	id := results[0].ID
	_, err = sb.Push(t.Context(), backend.Push{Channel: "room:7", Set: map[string]any{"turn": "bob"}, If: map[string]any{"turn": 0, "none": true}})
	refused, ok := errors.AsType[*backend.Error](err)
	if !ok || refused.Code != client.Conflict || refused.Status != 409 || refused.Fields["turn"].ID != id || string(refused.Fields["turn"].Value) != `"amy"` {
		t.Fatalf("%+v", err)
	}
	if f, named := refused.Fields["none"]; !named || f != nil {
		t.Errorf("the absent field: %v, %v", f, named)
	}
	text, err := json.Marshal(refused)
	var same backend.Error
	if err := errors.Join(err, json.Unmarshal(text, &same)); err != nil || same.Fields["turn"].ID != id || same.Fields["turn"].Until != refused.Fields["turn"].Until {
		t.Errorf("%s becomes %+v (%v)", text, same, err)
	}

	page, err := sb.State(t.Context(), "room:7", backend.PageQuery{Prefix: "seat/"})
	if err != nil || page.ID != id || len(page.Fields) != 1 || page.Fields["seat/A1"].Until.IsZero() {
		t.Errorf("%+v, %v", page, err)
	}
	rows, err := sb.QueryState(t.Context(), []string{"room:7", "room:8"}, []string{"turn"})
	if err != nil || len(rows) != 2 || rows[0].Fields["turn"].ID != id || rows[1].Fields["turn"] != nil {
		t.Errorf("%+v, %v", rows, err)
	}
	history, err := sb.History(t.Context(), "room:7", backend.HistoryQuery{})
	if err != nil || len(history.Messages) != 1 || string(history.Messages[0].Set["turn"]) != `"amy"` || !history.Recovered {
		t.Errorf("%+v, %v", history, err)
	}
}

func TestBatch(t *testing.T) {
	sb, _ := start(t)
	outcomes, err := sb.Batch(t.Context(), []backend.Push{{Channel: "a", Data: 1}, {Channel: "b"}, {Channels: []string{"c", "d e"}, Data: 1}})
	if err != nil || len(outcomes) != 3 {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	if outcomes[0].Err() != nil || outcomes[1].Error == nil || outcomes[2].Error != nil || outcomes[2].Err() == nil {
		t.Errorf("%+v", outcomes)
	}
}
