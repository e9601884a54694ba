package sim

import (
	"context"
	"fmt"

	"switchboard/broker/delivery"
	"switchboard/internal/wire"
)

// push is one call of a backend.
type push struct {
	number  int
	kind    string // channel, user or client
	target  string
	must    []string // clients that it has to reach
	behind  int64    // acknowledged before it began, in the same channel
	done    bool
	checked bool
	id      int64
	err     error
}

func (p *push) String() string { return fmt.Sprintf("push %d to %s %s", p.number, p.kind, p.target) }
func (p *push) data() string   { return fmt.Sprint(p.number) }

// push begins a push over n.
func (w *world) push(n *node, kind, target string) {
	p := &push{number: len(w.pushes) + 1, kind: kind, target: target}
	w.log("%v over %s", p, n.slot)
	switch kind {
	case "channel":
		for _, q := range w.pushes {
			if q.target == target && q.checked && q.err == nil {
				p.behind = max(p.behind, q.id)
			}
		}
	case "client":
		p.must = []string{target}
	case "user":
		for _, name := range w.names {
			if cl := w.clients[name]; cl.user == target && cl.known {
				p.must = append(p.must, name)
			}
		}
	}
	w.pushes = append(w.pushes, p)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTime)
		defer cancel()
		payload := delivery.Payload{Data: []byte(p.data())}
		switch kind {
		case "channel":
			var r delivery.ChannelResult
			r, p.err = n.pusher.ToChannel(ctx, target, payload)
			p.id = r.ID
		case "client":
			_, p.err = n.pusher.ToClient(ctx, target, "", payload)
		case "user":
			_, p.err = n.pusher.ToUser(ctx, target, payload)
		}
		p.done = true
	}()
	w.settle()
}

// checkPushes looks at those that ended in this step: nothing is acknowledged that is not stored.
func (w *world) checkPushes() {
	for _, p := range w.pushes {
		if !p.done || p.checked {
			continue
		}
		p.checked = true
		switch {
		case p.err != nil:
			w.log("%v failed: %v", p, p.err)
			if !w.faulty() {
				w.violate("%v failed, and nothing was wrong: %v", p, p.err)
			}
			continue
		case p.kind == "channel":
			w.log("%v has id %d", p, p.id)
			if w.model.channel(p.target).data[p.id] != p.data() || p.id <= p.behind {
				w.violate("%v was acknowledged as %d, behind %d, and is not there", p, p.id, p.behind)
			}
			continue
		}
		w.log("%v is stored", p)
		for _, name := range p.must {
			if !w.model.client(name).has(p.data()) {
				w.violate("%v was acknowledged, and %s never had it in its queue", p, name)
			}
		}
	}
}

func (j *journal) has(data string) bool {
	for _, d := range j.data {
		if d == data {
			return true
		}
	}
	return false
}

// draw chooses a push.
func (w *world) drawPush() {
	n := pick(w, w.live())
	switch w.rng.IntN(8) {
	case 0:
		w.push(n, "channel", wire.AllChannel)
	case 1, 2, 3:
		w.push(n, "channel", pick(w, channelNames))
	case 4, 5:
		w.push(n, "client", pick(w, w.names))
	default:
		w.push(n, "user", pick(w, []string{"ann", "ben"}))
	}
}
