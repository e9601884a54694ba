package hold

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Status returns a resource with the places that are taken. They are counted: the call reads all
// seats that are held or sold.
func (h *Holds) Status(ctx context.Context, resource string) (*Status, error) {
	list, err := h.Statuses(ctx, []string{resource})
	if err != nil {
		return nil, err
	}
	if list[0] == nil {
		return nil, wire.Errorf(wire.NotFound, "there is no resource %s", resource)
	}
	return list[0], nil
}

// Statuses returns several resources, in their order, at most MaxResources. It has nil for a
// resource that does not exist.
func (h *Holds) Statuses(ctx context.Context, resources []string) ([]*Status, error) {
	if len(resources) > MaxResources {
		return nil, wire.Errorf(wire.TooLarge, "resources: %d names, at most %d are allowed", len(resources), MaxResources)
	}
	var reads []queue.StateRead
	for _, name := range resources {
		channel, err := channelOf(name)
		if err != nil {
			return nil, err
		}
		reads = append(reads, queue.StateRead{Channel: channel, Fields: []string{resourceField}},
			queue.StateRead{Channel: channel, Prefix: seatGroup, Bytes: state.PageBytes})
	}
	pages := h.host.ReadStates(ctx, reads)
	list := make([]*Status, len(resources))
	for i, name := range resources {
		own, seats := &pages[2*i], pages[2*i+1]
		if own.Err != nil {
			return nil, fmt.Errorf("read resource %s: %w", name, own.Err)
		}
		v := &view{channel: reads[2*i].Channel}
		if err := v.parse(&own.Value); err != nil {
			return nil, err
		}
		if v.resource == nil {
			continue
		}
		list[i] = &Status{Name: name, Version: v.version, Resource: *v.resource}
		if err := h.countSeats(ctx, list[i], reads[2*i+1], seats); err != nil {
			return nil, fmt.Errorf("read seats of %s: %w", name, err)
		}
	}
	return list, nil
}

// countSeats counts the seats of the page, and of the pages after it.
func (h *Holds) countSeats(ctx context.Context, s *Status, read queue.StateRead, page queue.Outcome[queue.StatePage]) error {
	sold := seatValue(Sold)
	for {
		if page.Err != nil {
			return page.Err
		}
		for _, f := range page.Value.Fields {
			if bytes.Equal(f.Value, sold) {
				s.Sold++
			} else {
				s.Held++
			}
		}
		if read.Cursor = page.Value.Next; read.Cursor == "" {
			s.Free = max(0, s.Capacity-s.Sold-s.Held) // the capacity was read before
			return nil
		}
		page = h.host.ReadStates(ctx, []queue.StateRead{read})[0]
	}
}

// Of returns the holds and sales of a user in a resource, the newest first. Ended ones are among
// them, as long as they are remembered.
func (h *Holds) Of(ctx context.Context, resource, user string) ([]*Hold, error) {
	if err := wire.CheckName("user", user); err != nil {
		return nil, err
	}
	if _, err := h.readExisting(ctx, resource, nil); err != nil {
		return nil, err
	}
	names, err := h.host.ReadGroup(ctx, channelPrefix+resource, ofGroup(user))
	if err != nil {
		return nil, fmt.Errorf("read the holds of %s: %w", user, err)
	}
	ids := make([]string, len(names))
	for i, f := range names {
		ids[i] = idOf(f.Name)
	}
	v, err := h.read(ctx, resource, ids)
	if err != nil {
		return nil, err
	}
	list := make([]*Hold, 0, len(v.records))
	for _, r := range v.records {
		list = append(list, v.show(r))
	}
	slices.SortFunc(list, func(a, b *Hold) int { return compareNewest(a, b) })
	return list, nil
}

func compareNewest(a, b *Hold) int {
	if a.Created != b.Created {
		return int(b.Created - a.Created)
	}
	return bytes.Compare([]byte(a.ID), []byte(b.ID))
}
