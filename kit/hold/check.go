package hold

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"switchboard/internal/state"
	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/queue"
)

// Check compares the seats of all resources with the records of holds and sales, and the cards of
// the index with the resources. Differences of cards last for some seconds after a change, and so
// do all differences of a state that changes between the reads of its pages.
func Check(o kit.CheckOptions) task.Check {
	return kit.Check("holds", func(ctx context.Context, f *kit.Findings) error {
		c := checker{o, f}
		known, err := kit.EachBatch(ctx, o.States, map[string]kit.Visit{channelPrefix: c.checkResources})
		if err != nil {
			return err
		}
		return kit.EachUnknown(ctx, o.Index, allList, channelPrefix, known, c.compareCards) // a resource may be new
	})
}

// checker is one look of a check.
type checker struct {
	kit.CheckOptions
	*kit.Findings
}

func (c *checker) report(name, format string, args ...any) {
	c.Add(channelPrefix+name, "look for writes to the channel from outside; PUT with an import restores what your database knows", format, args...)
}

func (c *checker) reportCard(name, problem string) {
	c.Add(channelPrefix+name, "brokers correct it within a minute; if it stays, look at their logs", "%s", problem)
}

// checkResources checks resources.
func (c *checker) checkResources(ctx context.Context, names []string) error {
	for _, name := range names {
		fields, clock, err := c.readAll(ctx, name)
		if err == nil && len(fields) > 0 {
			err = c.checkSeats(name, fields, clock)
		}
		if err != nil {
			return fmt.Errorf("resource %s: %w", name, err)
		}
	}
	return c.compareCards(ctx, names)
}

// readAll reads all fields of a resource, and returns the store's clock at the first page.
func (c *checker) readAll(ctx context.Context, name string) (fields map[string]*state.Field, clock int64, err error) {
	fields = make(map[string]*state.Field)
	read := queue.StateRead{Channel: channelPrefix + name, Bytes: state.PageBytes}
	for page, err := range kit.StatePages(ctx, c.States, read) {
		if err != nil {
			return nil, 0, err
		}
		clock = cmp.Or(clock, page.Clock)
		for _, f := range page.Fields {
			fields[f.Name] = f.Field
		}
	}
	return fields, clock, nil
}

// checkSeats compares the seats with the records, and their number with the capacity.
func (c *checker) checkSeats(name string, fields map[string]*state.Field, clock int64) error {
	owned := map[string]string{} // seats of live holds and sales: their ids
	taken := 0
	for _, field := range slices.Sorted(maps.Keys(fields)) { // equal findings in each look
		f := fields[field]
		if id, found := strings.CutPrefix(field, recordGroup); found {
			if err := c.checkRecord(name, id, f, fields, owned, clock); err != nil {
				return err
			}
		}
		if strings.HasPrefix(field, seatGroup) {
			taken++
		}
		if strings.HasPrefix(field, livePrefix) && fields[recordField(idOf(field))] == nil {
			c.report(name, "hold %s is live, but has no record", idOf(field))
		}
	}
	for field := range fields {
		if seat, found := strings.CutPrefix(field, seatGroup); found && owned[seat] == "" {
			c.report(name, "seat %s is taken, but no hold or sale has it", seat)
		}
	}
	if fields[resourceField] == nil {
		c.report(name, "there are fields, but no resource")
		return nil
	}
	r, err := parseResource(fields[resourceField])
	if err == nil && taken > r.Capacity {
		c.report(name, "more places than the capacity are taken")
	}
	return err
}

// checkRecord compares one record with its seats, and adds them to owned.
func (c *checker) checkRecord(name, id string, f *state.Field, fields map[string]*state.Field, owned map[string]string, clock int64) error {
	r, err := parseRecord(f)
	if err != nil {
		return err
	}
	live := fields[liveField(r.User, id)] != nil
	switch shown := r.show(id, name, f, clock); {
	case live != (shown.State == Held):
		c.report(name, "hold %s: the record says %s, and that it is live is stored: %t", id, shown.State, live)
		return nil
	case shown.State != Held && shown.State != Sold:
		return nil
	}
	parent := recordField(id)
	if r.State == Held {
		parent = liveField(r.User, id)
	}
	for _, seat := range r.Seats {
		switch s := fields[seatField(seat)]; {
		case owned[seat] != "":
			c.report(name, "seat %s has two holds or sales", seat)
		case s == nil:
			c.report(name, "seat %s of %s, which is %s, is free", seat, id, r.State)
		case !bytes.Equal(s.Value, seatValue(r.State)) || s.Parent != parent || s.Lease != fields[parent].Lease:
			c.report(name, "seat %s does not end with %s, which is %s", seat, id, r.State)
		}
		owned[seat] = id
	}
	return nil
}

// compareCards compares resources with their cards.
func (c *checker) compareCards(ctx context.Context, names []string) error {
	stored, err := c.Index.Get(ctx, names...)
	if err != nil {
		return err
	}
	for i, l := range lookAt(ctx, c.States, names) {
		if l.err != nil {
			return l.err
		}
		switch card := l.card(); {
		case l.status == nil && stored[i].ID != "":
			c.reportCard(l.name, "it has a card, but there is no resource")
		case l.status != nil && stored[i].ID == "":
			c.reportCard(l.name, "it has no card")
		case !maps.Equal(card.Lists, stored[i].Lists) || !bytes.Equal(card.Data, stored[i].Data):
			c.reportCard(l.name, "its card has other numbers of places")
		}
	}
	return nil
}

// Restore returns a round of a janitor that makes the brokers compute again the cards of resources
// without one, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{Name: "holds", Prefix: channelPrefix})
}
