package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestMemorySweeps checks that any later calls remove expired entries.
func TestMemorySweeps(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC)}
	m := NewMemory(Options{Now: c.Now, MetaTTL: 3 * time.Hour}, nil)
	const n = 500
	for i := range n {
		name := fmt.Sprint(i)
		must(m.AppendChannel(t.Context(), ChannelPush{Channel: name, Data: []byte("1"), Key: "k"}))(t)
		must(m.AppendClient(t.Context(), ClientPush{Client: name, Data: []byte("1"), Key: "k"}))(t)
	}
	held := func() (messages int) {
		for _, node := range m.channels.nodes {
			messages += len(node.value.messages)
		}
		for _, node := range m.clients.nodes {
			messages += len(node.value.messages)
		}
		return messages
	}
	equal(t, "messages", held(), 2*n)
	callMany := func() {
		for range n {
			must(m.ChannelSize(t.Context(), "none"))(t)
		}
	}
	c.advance(time.Hour)
	callMany()
	equal(t, "messages after their TTL", held(), 0)
	equal(t, "keys", len(m.pushed.nodes), 0)
	equal(t, "channels known", len(m.channels.nodes), n)
	equal(t, "clients known", len(m.clients.nodes), n)

	// The messages expire although the position lives longer.
	push(t, m, "0", 1)
	c.advance(time.Hour)
	callMany()
	equal(t, "messages after their TTL again", held(), 0)

	c.advance(3 * time.Hour)
	callMany()
	equal(t, "channels", len(m.channels.nodes)+len(m.channels.due), 0)
	equal(t, "clients", len(m.clients.nodes)+len(m.clients.due), 0)
}

func TestMemoryCopiesPayloads(t *testing.T) {
	m := NewMemory(Options{ChannelCap: 5}, nil)
	data := []byte("77")
	must(m.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: data}))(t)
	copy(data, "xx")
	push(t, m, "news", 4)
	var pages []Page
	for _, limit := range []int{2, 10} { // with messages after the page, and without
		pages = append(pages, must(m.ReadChannel(t.Context(), "news", 0, limit))(t))
	}
	push(t, m, "news", 1) // drops the first one
	for _, p := range pages {
		equal(t, "data", string(p.Messages[0].Data), "77")
	}
}
