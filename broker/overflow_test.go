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

// fill pushes n messages to a client, with what the push says besides, and returns their ids.
func (i instance) fill(t *testing.T, client string, n int, rest string) (ids []int64) {
	t.Helper()
	for range n {
		ids = append(ids, id(t, i.push(t, fmt.Sprintf(`{"client":%q,%s}`, client, rest))["id"]))
	}
	return ids
}

// expectIDs is expect for a run of the client's own messages.
func (p *peer) expectIDs(ids []int64) {
	p.t.Helper()
	for _, id := range ids {
		p.expect(object{"type": "message", "channel": nil, "id": id})
	}
}

// leaves ends the connection and waits until the store knows, with all that the client acknowledged.
func (p *peer) leaves(s store, client string) {
	p.t.Helper()
	p.close()
	await.True(p.t, client+" is offline", func() bool {
		c, _, err := s.queue.Client(p.t.Context(), client)
		return err == nil && c.Server == ""
	})
}

func (p *peer) expectGap(after, to int64) {
	p.t.Helper()
	p.expect(object{"type": "gap", "channel": nil, "after": after, "id": to})
}

// TestOverflowOfAClientThatDoesNotAcknowledge: what it has got is no gap on its connection, what it could
// not be given is one; and at the next connect so is what it had got without saying so.
func TestOverflowOfAClientThatDoesNotAcknowledge(t *testing.T) {
	s := memoryStore(queue.Options{ClientCap: 300})
	i := start(t, s, nil)
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		client := dashed(t.Name())
		p := dial(i)
		p.connect(client, "")
		ids := i.fill(t, client, queue.MaxWindow+344, `"data":1`) // 300 of them held
		p.expectIDs(ids[:queue.MaxWindow])
		p.say(`{"type":"ack","id":%d}`, ids[9])
		p.expectGap(ids[queue.MaxWindow-1], ids[299])
		p.expectIDs(ids[300 : 300+queue.MaxWindow]) // the lost ones are not on the way any more
		p.leaves(s, client)

		p = dial(i)
		p.connect(client, "")
		p.expectGap(ids[9], ids[299])
		p.expectIDs(ids[300 : 300+queue.MaxWindow])
		p.say(`{"type":"ack","id":%d}`, ids[399])
		p.expectIDs(ids[300+queue.MaxWindow:])
		p.leaves(s, client)

		more := i.fill(t, client, 250, `"data":1`) // offline: 200 + 250, of which 300 are held
		waiting := append(ids[400:], more...)
		p = dial(i)
		p.connect(client, "")
		p.expectGap(ids[399], waiting[149])
		p.expectIDs(waiting[150 : 150+queue.MaxWindow])
	})
}

// TestOverflowOfAStalledClient: it does not read, and finds each gap where the messages are missing.
func TestOverflowOfAStalledClient(t *testing.T) {
	i := start(t, memoryStore(queue.Options{ClientCap: 5}), nil)
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		client := dashed(t.Name())
		p := dial(i)
		p.connect(client, "")
		ids := i.fill(t, client, 170, fmt.Sprintf(`"data":%q`, strings.Repeat("x", 60_000))) // 10 MB: more than socket buffers hold
		gaps := 0
		for at := -1; at < len(ids)-1; {
			m := p.hear()
			if m["type"] != "gap" {
				at++
				if fmt.Sprint(m["id"]) != fmt.Sprint(ids[at]) {
					t.Fatalf("%v came where %d is due", m["id"], ids[at])
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
				t.Fatalf("%v, want after %d, up to a message", m, after)
			}
			if at >= len(ids)-5 {
				t.Fatalf("%v takes messages that are held", m)
			}
		}
		if gaps == 0 {
			t.Error("no gap: nothing is tested")
		}
	})
}

// TestExpiryOfAClientQueue is a gap as well, and a push can put it off.
func TestExpiryOfAClientQueue(t *testing.T) {
	var hours atomic.Int64 // in tenths
	begin := time.Now()
	now := func() time.Time { return begin.Add(time.Duration(hours.Load()) * time.Hour / 10) }
	s := memoryStore(queue.Options{Now: now})
	i := start(t, s, nil)
	const plain, ttl = `"data":1`, `"data":1,"ttl":7200`
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		client := dashed(t.Name())
		p := dial(i)
		p.connect(client, "")
		ids := i.fill(t, client, queue.MaxWindow+2, plain)
		p.expectIDs(ids[:queue.MaxWindow])
		hours.Add(10) // online: what it has got is not missing
		p.say(`{"type":"ack","id":%d}`, ids[99])
		p.expectGap(ids[queue.MaxWindow-1], ids[queue.MaxWindow+1])
		p.leaves(s, client)

		p = dial(i) // of what is gone it may have what it did not acknowledge: nobody knows
		p.connect(client, "")
		p.expectGap(ids[99], ids[queue.MaxWindow+1])
		p.leaves(s, client)

		for name, order := range map[string][2]string{"the longer last": {plain, ttl}, "the longer first": {ttl, plain}} {
			ids := append(i.fill(t, client, 2, order[0]), i.fill(t, client, 2, order[1])...)
			before := ids[0] - 1
			hours.Add(19) // of the 20 that one of them asked for
			p = dial(i)
			p.connect(client, "")
			if got := p.hear(); got["type"] == "gap" { // of what went before, until something is acknowledged
				if id(t, got["id"]) > before {
					t.Fatalf("%s: %v before its time", name, got)
				}
				p.expectIDs(ids)
			} else if id(t, got["id"]) != ids[0] {
				t.Fatalf("%s: %v", name, got)
			} else {
				p.expectIDs(ids[1:])
			}
			p.say(`{"type":"ack","id":%d}`, ids[0])
			p.leaves(s, client)
			hours.Add(1)
			p = dial(i)
			p.connect(client, "")
			p.expectGap(ids[0], ids[3])
			p.leaves(s, client)
		}
	})
}
