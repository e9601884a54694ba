package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/broker/delivery"
	"switchboard/internal/state"
)

// drawUpdate starts a random update by the backend.
func (w *world) drawUpdate() {
	n, channel := pick(w, w.live()), pick(w, channelNames)
	p := w.newPush(n, "channel", channel)
	p.update = &state.Update{Writer: state.BackendHolder, Limits: state.Limits{Keep: w.rules.keep, Fields: 10}}
	if w.oneIn(2) {
		p.update.Data = []byte(p.data())
	}
	names := []string{members + "c1", members + "c2", members + "x", seats + "1", seats + "2", seats + "3", seats + "4", "turn", "count", "$$secret", "$max/" + seats}
	w.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+w.rng.IntN(3)] {
		p.update.Ops = append(p.update.Ops, w.backendOp(name))
	}
	if w.oneIn(4) {
		p.update.If = []state.Condition{{Field: "turn", Kind: state.IsID, ID: w.model.fieldsOf(channel).fold.Fields["turn"].ID}}
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		var r delivery.ChannelResult
		r, p.err = n.pusher.ToChannel(ctx, channel, delivery.Payload{Update: p.update})
		p.id, p.done = r.ID, true
	}()
	w.settle()
}

func (w *world) backendOp(name string) state.Op {
	op := state.Op{Field: name, Kind: pick(w, []state.Kind{state.Set, state.Set, state.Set, state.Delete, state.Touch})}
	op.GroupMax = map[string]int{members: maxMembers, seats: maxSeats}[state.Group(name)]
	switch {
	case name == "count":
		op.Kind, op.By, op.Min, op.Max = state.Add, int64(w.rng.IntN(5)-2), -3, 3
	case name == "$max/"+seats:
		op.Kind, op.Value = pick(w, []state.Kind{state.Set, state.Delete}), fmt.Append(nil, w.rng.IntN(maxSeats+1))
	case op.Kind == state.Set:
		op.Value = fmt.Append(nil, w.rng.IntN(100))
	}
	if w.oneIn(2) {
		op.TTL = time.Duration(1+w.rng.IntN(80)) * time.Millisecond
	}
	if op.Kind != state.Add && w.oneIn(10) {
		op.Own = state.Disown
	}
	return op
}

// checkUpdate checks an update that was acknowledged or refused. It returns whether p.err is an
// error of the store.
func (w *world) checkUpdate(p *push) (failed bool) {
	if refusal, refused := errors.AsType[*state.Refusal](p.err); refused {
		w.log("%v is refused: %v", p, refusal)
		return false
	}
	if p.err != nil {
		return true
	}
	w.log("%v has id %d", p, p.id)
	entry := w.model.fieldsOf(p.target).entry(p.id)
	if entry == nil || string(entry.Data) != string(p.update.Data) || p.id <= p.afterID {
		w.violate("%v was acknowledged as %d, after %d, but is not stored there: %+v", p, p.id, p.afterID, entry)
	}
	return false
}
