package sim

import (
	"context"
	"fmt"

	"switchboard/broker/delivery"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// push is a push by a backend.
type push struct {
	number      int
	kind        string // channel, user or client
	first       bool   // to a user: the first acknowledgement withdraws it from the user's other clients
	target      string
	recipients  []string      // the clients that must receive it
	afterID     int64         // the highest id in the channel that was acknowledged before the push began
	update      *state.Update // to a channel, instead of data
	predecessor *push         // the previous push of the same batch to the same target
	done        bool
	checked     bool
	id          int64
	err         error
}

func (p *push) String() string { return fmt.Sprintf("push %d to %s %s", p.number, p.kind, p.target) }
func (p *push) data() string   { return fmt.Sprint(p.number) }

// push starts a push on n.
func (w *world) push(n *node, kind, target string) {
	p := w.newPush(n, kind, target)
	if kind == "user" && w.oneIn(2) {
		p.first = true
		w.log("%v is withdrawn by the first acknowledgement", p)
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		payload := delivery.Payload{Data: []byte(p.data()), First: p.first}
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

var kinds = map[string]delivery.Kind{"channel": delivery.Channel, "client": delivery.Client, "user": delivery.User}

// batch starts several pushes in one call on n. Each target is a kind and a name.
func (w *world) batch(n *node, targets ...[2]string) {
	own := make([]*push, len(targets))
	pushes := make([]delivery.Push, len(targets))
	last := make(map[[2]string]*push)
	for i, target := range targets {
		p := w.newPush(n, target[0], target[1])
		p.predecessor = last[target]
		own[i], last[target] = p, p
		pushes[i] = delivery.Push{Kind: kinds[p.kind], Name: p.target, Payload: delivery.Payload{Data: []byte(p.data())}}
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		n.pusher.PushBatch(ctx, pushes)
		for i, p := range own {
			p.err, p.done = pushes[i].Err, true
			p.id = max(pushes[i].Channel.ID, pushes[i].Client.ID)
		}
	}()
	w.settle()
}

// newPush records a push and its expected result.
func (w *world) newPush(n *node, kind, target string) *push {
	p := &push{number: len(w.pushes) + 1, kind: kind, target: target}
	w.log("%v on %s", p, n.machine)
	switch kind {
	case "channel":
		for _, q := range w.pushes {
			if q.target == target && q.checked && q.err == nil {
				p.afterID = max(p.afterID, q.id)
			}
		}
	case "client":
		p.recipients = []string{target}
	case "user":
		for _, name := range w.names {
			if cl := w.clients[name]; cl.user == target && cl.connectedOnce {
				p.recipients = append(p.recipients, name)
			}
		}
	}
	w.pushes = append(w.pushes, p)
	return p
}

// checkPushes checks the pushes that ended in this step: each acknowledged one must be stored.
func (w *world) checkPushes() {
	for _, p := range w.pushes {
		if !p.done || p.checked {
			continue
		}
		p.checked = true
		if p.err == nil && p.predecessor != nil && p.predecessor.err == nil && p.id != 0 && p.id <= p.predecessor.id {
			w.violate("%v has id %d, but %v before it has %d", p, p.id, p.predecessor, p.predecessor.id)
		}
		switch {
		case p.update != nil && !w.checkUpdate(p):
			continue
		case p.err != nil:
			w.log("%v failed: %v", p, p.err)
			if !w.faulty() {
				w.violate("%v failed without a fault: %v", p, p.err)
			}
			continue
		case p.kind == "channel":
			w.log("%v has id %d", p, p.id)
			if w.model.channel(p.target).data[p.id] != p.data() || p.id <= p.afterID {
				w.violate("%v was acknowledged as %d, after %d, but is not stored there", p, p.id, p.afterID)
			}
			continue
		}
		w.log("%v is stored", p)
		for _, name := range p.recipients {
			if !w.model.client(name).has(p.data()) {
				w.violate("%v was acknowledged, but it was never in the queue of %s", p, name)
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

// drawPush starts a random push or batch.
func (w *world) drawPush() {
	n := pick(w, w.live())
	if w.oneIn(6) {
		choices := [][2]string{{"channel", pick(w, channelNames)}, {"client", pick(w, w.names)}, {"user", "ann"}}
		targets := make([][2]string, 2+w.rng.IntN(4))
		for i := range targets {
			targets[i] = pick(w, choices)
		}
		w.batch(n, targets...)
		return
	}
	switch w.rng.IntN(8) {
	case 0:
		w.push(n, "channel", wire.AllChannel)
	case 1, 2, 3:
		w.push(n, "channel", pick(w, channelNames))
	case 4, 5:
		w.push(n, "client", pick(w, w.names))
	default:
		w.push(n, "user", pick(w, []string{"ann", "ann", "ben"}))
	}
}
