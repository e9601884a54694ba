package hold

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Page is a part of the list of all resources.
type Page struct {
	Resources []*Status `json:"resources"`
	Cursor    string    `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// List returns resources in the order of their names, at most limit of them, see kit.PageLimit. A
// page of large ones ends after kit.BackendBytes. cursor is that of the previous page, or "". A new
// resource is in the list within about a second. Its numbers are as of now.
func (h *Holds) List(ctx context.Context, cursor string, limit int) (*Page, error) {
	q := index.Query{List: allList, Cursor: cursor, Limit: limit}
	list, next, err := kit.ReadPage(ctx, h.opts.Index, q, true, func(ctx context.Context, cards []index.Card) (list []*Status, err error) {
		for part := range slices.Chunk(index.IDs(cards), MaxResources) {
			found, err := h.Statuses(ctx, part)
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		}
		return list, nil
	}, func(s *Status) bool { return s != nil }) // a resource without a status was removed lately
	if err != nil {
		return nil, err
	}
	return &Page{Resources: list, Cursor: next}, nil
}

// HoldPage is a part of the list of the holds of a resource.
type HoldPage struct {
	Holds  []*Hold `json:"holds"`
	Cursor string  `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// HoldQuery selects holds of a resource.
type HoldQuery struct {
	State  State  `query:"state"` // "" selects all
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" range:"page"` // see kit.PageLimit
}

// ListHolds returns holds and sales of a resource in the order of their ids, with those that ended
// lately. A page has the selected ones among Limit of them, so that it may have fewer. A page of
// large ones ends after kit.BackendBytes.
func (h *Holds) ListHolds(ctx context.Context, resource string, q HoldQuery) (*HoldPage, error) {
	if err := kit.PageLimit(&q.Limit, true); err != nil {
		return nil, err
	}
	read := queue.StateRead{Prefix: recordGroup, Limit: q.Limit, Bytes: kit.BackendBytes}
	switch {
	case !slices.Contains([]State{"", Held, Sold, Released, Expired}, q.State):
		return nil, wire.Errorf(wire.BadRequest, "state: want held, sold, released or expired")
	case q.Cursor != "" && checkID(q.Cursor) != nil:
		return nil, wire.BadCursor()
	case q.Cursor != "":
		read.Cursor = recordField(q.Cursor)
	}
	v, err := h.readExisting(ctx, resource, nil, read)
	if err != nil {
		return nil, err
	}
	page := &HoldPage{Holds: []*Hold{}, Cursor: idOf(v.read.Value.Next)}
	if err := v.parse(&v.read.Value); err != nil {
		return nil, err
	}
	for _, f := range v.read.Value.Fields {
		if shown := v.show(v.records[idOf(f.Name)]); q.State == "" || shown.State == q.State {
			page.Holds = append(page.Holds, shown)
		}
	}
	return page, nil
}

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
	slices.SortFunc(list, compareNewest)
	return list, nil
}

func compareNewest(a, b *Hold) int {
	return cmp.Or(cmp.Compare(b.Created, a.Created), strings.Compare(a.ID, b.ID))
}
