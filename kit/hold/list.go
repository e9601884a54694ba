package hold

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"switchboard/internal/wire"
	"switchboard/kit/index"
)

// Page is a part of the list of all resources.
type Page struct {
	Resources []*Status `json:"resources"`
	Cursor    string    `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// List returns resources in the order of their names, at most limit of them; 0, or more than
// MaxResources, means MaxResources. cursor is that of the previous page, or "". A new resource is
// in the list within about a second. Its numbers are as of now.
func (h *Holds) List(ctx context.Context, cursor string, limit int) (*Page, error) {
	if limit <= 0 || limit > MaxResources {
		limit = MaxResources
	}
	cards, err := h.opts.Index.List(ctx, index.Query{List: allList, Cursor: cursor, Limit: limit})
	if errors.Is(err, index.ErrBadCursor) {
		return nil, wire.Errorf(wire.BadRequest, "cursor: %.80q is not that of a page", cursor)
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(cards.Cards))
	for i, c := range cards.Cards {
		names[i] = c.ID
	}
	list, err := h.Statuses(ctx, names)
	if err != nil {
		return nil, err
	}
	page := &Page{Resources: []*Status{}, Cursor: cards.Next}
	for _, s := range list {
		if s != nil { // else it was removed lately
			page.Resources = append(page.Resources, s)
		}
	}
	return page, nil
}

func (h *Holds) listCall(r *http.Request) (any, error) {
	q, limit := r.URL.Query(), 0
	if text := q.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, wire.Errorf(wire.BadRequest, "limit: %.40q is not a positive number", text)
		}
	}
	return answer(h.List(r.Context(), q.Get("cursor"), limit))
}
