package backend_test

import (
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/backend"
)

func TestOperatorCalls(t *testing.T) {
	sb, address := start(t)
	ctx := t.Context()
	connect(t, address, "alice", "phone", "news")
	self, err := sb.Self(ctx)
	if err != nil || self.Server == "" || !self.Open || len(self.Key.Scopes) != 3 || self.Redis {
		t.Errorf("%+v, %v", self, err)
	}
	stats, err := sb.Stats(ctx)
	if err != nil || len(stats.Servers) != 1 || stats.Servers[0].Connections != 1 || stats.Partial {
		t.Errorf("%+v, %v", stats, err)
	}
	push, err := sb.Push(ctx, backend.Push{Client: "alice/phone", Data: 1})
	if err != nil {
		t.Fatal(err)
	}
	// The client acknowledges at once, so the queue may be empty already.
	queue, err := sb.Queue(ctx, "alice/phone", backend.HistoryQuery{})
	if err != nil || queue.ID > push[0].ID || queue.Client != "alice/phone" {
		t.Errorf("%+v, %v", queue, err)
	}
	_, err = sb.Queue(ctx, "carol/tab", backend.HistoryQuery{})
	code(t, err, client.NotFound)
	_, err = sb.Webhooks(ctx)
	code(t, err, client.NotFound)
}

// TestWait: History waits for the next message.
func TestWait(t *testing.T) {
	sb, _ := start(t)
	first, err := sb.Push(t.Context(), backend.Push{Channel: "news", Data: 1})
	if err != nil {
		t.Fatal(err)
	}
	pages := make(chan backend.HistoryPage, 1)
	go func() {
		page, err := sb.History(t.Context(), "news", backend.HistoryQuery{After: first[0].ID, Wait: 30 * time.Second})
		if err != nil {
			t.Error(err)
		}
		pages <- page
	}()
	second, err := sb.Push(t.Context(), backend.Push{Channel: "news", Data: 2})
	page := <-pages
	if err != nil || len(page.Messages) != 1 || page.Messages[0].ID != second[0].ID || page.ID != second[0].ID || !page.Recovered {
		t.Errorf("%+v, %v", page, err)
	}
}
