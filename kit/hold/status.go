package hold

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"switchboard/internal/wire"
)

// Status returns a resource with the places that are taken.
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
	return h.statuses(ctx, resources, 0)
}

// statuses is Statuses, and TooLarge if the resources have more than maxBytes, 0 for no limit. It
// reads a resource once that is named twice, and little more than maxBytes.
func (h *Holds) statuses(ctx context.Context, resources []string, maxBytes int) ([]*Status, error) {
	if len(resources) > MaxResources {
		return nil, wire.Errorf(wire.TooLarge, "resources: %d names, at most %d are allowed", len(resources), MaxResources)
	}
	for _, name := range resources {
		if _, err := channelOf(name); err != nil {
			return nil, err
		}
	}
	rest := slices.Compact(slices.Sorted(slices.Values(resources)))
	found := make(map[string]*Status, len(rest))
	for bytes, next := 0, len(rest); len(rest) > 0; {
		if maxBytes > 0 { // as many as fit if they are like those before
			next = min(len(rest), max(2, len(found)*(maxBytes-bytes)/max(bytes, 1)))
		}
		for _, l := range lookAt(ctx, h.host, rest[:next]) {
			if l.err != nil {
				return nil, l.err
			}
			found[l.name] = l.status
			bytes += l.bytes
		}
		if rest = rest[next:]; maxBytes > 0 && bytes > maxBytes {
			return nil, wire.Errorf(wire.TooLarge, "resources: they have more than %d KiB; ask for fewer at a time", maxBytes>>10)
		}
	}
	list := make([]*Status, len(resources))
	for i, name := range resources {
		list[i] = found[name]
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
