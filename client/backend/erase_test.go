package backend_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"switchboard/client"
	"switchboard/client/backend"
)

// TestEraseMessage checks that a client receives the report of an erasure, with the state and
// without it, and that histories show it.
func TestEraseMessage(t *testing.T) {
	c, address := start(t)
	events := make(chan string, 16)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for _, name := range []string{"amy", "bob"} {
		reader, err := client.New(client.Options{
			URLs: []string{"ws://" + address + "/ws"}, Client: name,
			OnMessage: func(m client.Message) { events <- fmt.Sprintf("%s: message %d %s", name, m.ID, m.Data) },
			OnErase:   func(e client.Erased) { events <- fmt.Sprintf("%s: erased %s %d", name, e.Channel, e.ID) },
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() { ended <- reader.Run(ctx) }()
		if _, err := reader.Subscribe(ctx, "chat", client.SubscribeOptions{State: name == "bob"}); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		cancel()
		<-ended
		<-ended
	}()
	want := func(text string) {
		t.Helper()
		got := map[string]bool{<-events: true, <-events: true}
		if !got["amy: "+text] || !got["bob: "+text] {
			t.Fatalf("got %v, want twice %q", got, text)
		}
	}
	results, err := c.Push(t.Context(), backend.Push{Channel: "chat", Data: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	id := results[0].ID
	want(fmt.Sprintf(`message %d "secret"`, id))
	erased, err := c.EraseMessage(t.Context(), backend.Erase{Channel: "chat", ID: id})
	if err != nil || erased.Erased == 0 || erased.Report <= id || erased.Duplicate {
		t.Fatalf("erased %+v, %v", erased, err)
	}
	want(fmt.Sprintf("erased chat %d", id))
	again, err := c.EraseMessage(t.Context(), backend.Erase{Channel: "chat", ID: id})
	if err != nil || !again.Duplicate || again.Erased != erased.Erased {
		t.Errorf("a repetition: %+v, %v", again, err)
	}
	page, err := c.History(t.Context(), "chat", backend.HistoryQuery{})
	if err != nil || len(page.Messages) != 2 {
		t.Fatalf("history %+v, %v", page, err)
	}
	if m := page.Messages; m[0].Data != nil || m[0].Erased != erased.Erased || m[1].StateEvent == nil || m[1].Erase != id {
		t.Errorf("the history is %+v", m)
	}
	_, err = c.EraseMessage(t.Context(), backend.Erase{Channel: "chat", ID: erased.Report + 1})
	if refusal, ok := errors.AsType[*backend.Error](err); !ok || refusal.Code != client.NotFound {
		t.Errorf("a message that does not exist: %v", err)
	}
}
