package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/queue"
)

// fill pushes n messages to a client and returns their ids. fields are the other fields of each
// push.
func (i instance) fill(t *testing.T, client string, n int, fields string) (ids []int64) {
	t.Helper()
	for range n {
		ids = append(ids, id(t, i.push(t, fmt.Sprintf(`{"client":%q,%s}`, client, fields))["id"]))
	}
	return ids
}

// expectIDs receives messages of the client's queue and checks their ids.
func (p *testClient) expectIDs(ids []int64) {
	p.t.Helper()
	for _, id := range ids {
		p.expect(object{"type": "message", "channel": nil, "id": id})
	}
}

// disconnect closes the connection and waits until the client is offline in the store. The store
// then has all its acknowledgements.
func (p *testClient) disconnect(s store, client string) {
	p.t.Helper()
	p.close()
	await.True(p.t, client+" is offline", func() bool {
		c, _, err := s.queue.Client(p.t.Context(), client)
		return err == nil && c.Server == ""
	})
}

func (p *testClient) expectGap(after, to int64) {
	p.t.Helper()
	p.expect(object{"type": "gap", "channel": nil, "after": after, "id": to})
}

// TestOverflowOfAClientThatDoesNotAcknowledge: on the connection, only messages that were dropped
// unsent cause a gap. At the next connect, dropped messages that were sent but not acknowledged
// cause one too.
func TestOverflowOfAClientThatDoesNotAcknowledge(t *testing.T) {
	t.Parallel()
	s := memoryStore(queue.Options{ClientCap: 300})
	i := start(t, s, nil)
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		client := clientName(t.Name())
		p := dial(i)
		p.connect(client, "")
		ids := i.fill(t, client, queue.MaxWindow+344, `"data":1`) // the queue keeps 300 of them
		p.expectIDs(ids[:queue.MaxWindow])
		p.send(`{"type":"ack","id":%d}`, ids[9])
		p.expectGap(ids[queue.MaxWindow-1], ids[299])
		p.expectIDs(ids[300 : 300+queue.MaxWindow]) // the dropped ones no longer count as in flight
		p.disconnect(s, client)

		p = dial(i)
		p.connect(client, "")
		p.expectGap(ids[9], ids[299])
		p.expectIDs(ids[300 : 300+queue.MaxWindow])
		p.send(`{"type":"ack","id":%d}`, ids[399])
		p.expectIDs(ids[300+queue.MaxWindow:])
		p.disconnect(s, client)

		more := i.fill(t, client, 250, `"data":1`) // the client is offline: of 200 + 250 messages the queue keeps 300
		waiting := append(ids[400:], more...)
		p = dial(i)
		p.connect(client, "")
		p.expectGap(ids[399], waiting[149])
		p.expectIDs(waiting[150 : 150+queue.MaxWindow])
	})
}

// TestOverflowOfAStalledClient: a client that did not read receives each gap in the place of the
// dropped messages.
func TestOverflowOfAStalledClient(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{ClientCap: 5}), nil)
	over(t, smallDialers, func(t *testing.T, dial func(instance) *testClient) {
		client := clientName(t.Name())
		p := dial(i)
		p.connect(client, "")
		ids := i.fill(t, client, 128, fmt.Sprintf(`"data":%q`, strings.Repeat("x", 16<<10))) // 2 MiB: more than the buffers hold
		gaps := 0
		for at := -1; at < len(ids)-1; {
			m := p.receive()
			if m["type"] != "gap" {
				at++
				if fmt.Sprint(m["id"]) != fmt.Sprint(ids[at]) {
					t.Fatalf("received %v, want %d", m["id"], ids[at])
				}
				continue
			}
			gaps++
			var after int64
			if at >= 0 {
				after = ids[at]
			}
			to := id(t, m["id"])
			for at++; ids[at] < to; at++ {
			}
			if id(t, m["after"]) != after || to != ids[at] {
				t.Fatalf("%v, want a gap after %d that ends at a message", m, after)
			}
			if at >= len(ids)-5 {
				t.Fatalf("%v covers messages that the queue keeps", m)
			}
		}
		if gaps == 0 {
			t.Error("no gap: the test did not fill the socket")
		}
	})
}

// TestExpiryOfAClientQueue: expired messages cause a gap too, and a push with a ttl postpones the
// expiry.
func TestExpiryOfAClientQueue(t *testing.T) {
	var tenths atomic.Int64 // of an hour, since begin
	begin := time.Now()
	now := func() time.Time { return begin.Add(time.Duration(tenths.Load()) * time.Hour / 10) }
	s := memoryStore(queue.Options{Now: now})
	i := start(t, s, nil)
	const plain, ttl = `"data":1`, `"data":1,"ttl":7200`
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		client := clientName(t.Name())
		p := dial(i)
		p.connect(client, "")
		ids := i.fill(t, client, queue.MaxWindow+2, plain)
		p.expectIDs(ids[:queue.MaxWindow])
		i.TickSessions(0) // the hints of the last two messages must find the window full
		tenths.Add(10)    // while the client is online, received messages cause no gap
		p.send(`{"type":"ack","id":%d}`, ids[99])
		p.expectGap(ids[queue.MaxWindow-1], ids[queue.MaxWindow+1])
		p.disconnect(s, client)

		p = dial(i) // without an acknowledgement the broker cannot know which expired messages were received
		p.connect(client, "")
		p.expectGap(ids[99], ids[queue.MaxWindow+1])
		p.disconnect(s, client)

		for name, order := range map[string][2]string{"pushes with a ttl last": {plain, ttl}, "pushes with a ttl first": {ttl, plain}} {
			ids := append(i.fill(t, client, 2, order[0]), i.fill(t, client, 2, order[1])...)
			before := ids[0] - 1
			tenths.Add(19) // the ttl is 20 tenths of an hour
			p = dial(i)
			p.connect(client, "")
			if got := p.receive(); got["type"] == "gap" { // for messages that expired earlier; the acknowledgement below prevents another such gap
				if id(t, got["id"]) > before {
					t.Fatalf("%s: %v expired too early", name, got)
				}
				p.expectIDs(ids)
			} else if id(t, got["id"]) != ids[0] {
				t.Fatalf("%s: %v", name, got)
			} else {
				p.expectIDs(ids[1:])
			}
			p.send(`{"type":"ack","id":%d}`, ids[0])
			p.disconnect(s, client)
			tenths.Add(1)
			p = dial(i)
			p.connect(client, "")
			p.expectGap(ids[0], ids[3])
			p.disconnect(s, client)
		}
	})
}
