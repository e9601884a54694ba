package hold

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// look is a resource as it is now.
type look struct {
	name   string
	status *Status // nil if there is no resource
	id     int64   // the last id of the channel, at most
	clock  int64   // the store's clock, Unix ms
	next   int64   // when the next hold ends, Unix ms; 0 for never
	err    error
}

// lookAt reads resources, in one round trip unless one has more than a page of seats.
func lookAt(ctx context.Context, states kit.StateReader, names []string) []look {
	var reads []queue.StateRead
	for _, name := range names {
		reads = append(reads, queue.StateRead{Channel: channelPrefix + name, Fields: []string{resourceField}},
			queue.StateRead{Channel: channelPrefix + name, Prefix: seatGroup, Bytes: state.PageBytes})
	}
	pages := states.ReadStates(ctx, reads)
	looks := make([]look, len(names))
	for i, name := range names {
		looks[i] = look{name: name}
		if err := looks[i].read(ctx, states, pages[2*i], reads[2*i+1], pages[2*i+1]); err != nil {
			looks[i].err = fmt.Errorf("read resource %s: %w", name, err)
		}
	}
	return looks
}

// read takes the page with $resource, and counts the seats of the next page and of those after it.
func (l *look) read(ctx context.Context, states kit.StateReader, own queue.Outcome[queue.StatePage], read queue.StateRead, page queue.Outcome[queue.StatePage]) error {
	if own.Err != nil {
		return own.Err
	}
	v := &view{channel: read.Channel}
	if err := v.parse(&own.Value); err != nil {
		return err
	}
	if l.id, l.clock = own.Value.ID, own.Value.Clock; v.resource == nil {
		return page.Err
	}
	s := &Status{Name: l.name, Version: v.version, Resource: *v.resource}
	l.status, l.next = s, s.Ends
	for {
		if page.Err != nil {
			return page.Err
		}
		for _, f := range page.Value.Fields {
			l.count(f.Field)
		}
		if read.Cursor = page.Value.Next; read.Cursor == "" {
			s.Free = max(0, s.Capacity-s.Sold-s.Held) // the capacity was read before
			return nil
		}
		page = states.ReadStates(ctx, []queue.StateRead{read})[0]
	}
}

// count counts a seat.
func (l *look) count(seat *state.Field) {
	if bytes.Equal(seat.Value, seatValue(Sold)) {
		l.status.Sold++
	} else {
		l.status.Held++
	}
	if until := seat.Until(); until > 0 && (l.next == 0 || until < l.next) {
		l.next = until
	}
}

// Lists of the index. The list all has every resource with the score 0, and so in the order of the
// names. A resource is in held/3 if the number of its held places has the bit with the value 2^3,
// and in sold/… likewise. So the places of all resources are counted without reading the cards.
const (
	allList   = "all"
	countBits = 14 // of MaxCapacity
)

// bitList returns the list of the resources whose number of places in a state has a bit.
func bitList(s State, bit int) string { return fmt.Sprintf("%s/%d", s, bit) }

// card returns the card of the resource, which has no lists if there is none. Holds end without a
// message in the log, so that the version is the clock, as an id, if that is higher.
func (l *look) card() index.Card {
	c := index.Card{ID: l.name, Version: max(l.id, queue.IDAt(time.UnixMilli(l.clock)))}
	if l.status == nil {
		return c
	}
	counts := map[State]int{Held: l.status.Held, Sold: l.status.Sold}
	c.Lists = map[string]int64{allList: 0}
	for s, n := range counts {
		for bit := range countBits {
			if n>>bit&1 == 1 {
				c.Lists[bitList(s, bit)] = 0
			}
		}
	}
	c.Data, _ = json.Marshal(counts) // never fails
	return c
}
