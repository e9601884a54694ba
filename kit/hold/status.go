package hold

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"switchboard/internal/wire"
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
	for _, name := range resources {
		if _, err := channelOf(name); err != nil {
			return nil, err
		}
	}
	list := make([]*Status, len(resources))
	for i, l := range lookAt(ctx, h.host, resources) {
		if l.err != nil {
			return nil, l.err
		}
		list[i] = l.status
	}
	return list, nil
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
