package session

import (
	"cmp"

	"switchboard/internal/meter"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxStateFields is the most fields of one answer to a request for the state.
const maxStateFields = 1024

// afterHidden is the cursor of a page without hidden fields: all names with the prefix $$ sort
// before it, and all other names after it.
const afterHidden = "$$~"

// readState answers a request for a page of a channel's state. The ref tells the client that the
// page is not one of a subscription.
func (s *Session) readState(req wire.Request) {
	var prefix string
	if req.StateRequest != nil {
		prefix = req.Prefix
	}
	if err := s.checkReadState(req, prefix); err != nil {
		s.refuse(req.Ref, err)
		return
	}
	read := queue.StateRead{
		Channel: req.Channel, Prefix: prefix, Cursor: max(req.Cursor, afterHidden),
		Limit: cmp.Or(req.Limit, maxStateFields), Bytes: state.PageBytes,
	}
	call(s, weight(req), func(m *meter.Meter) (queue.StatePage, error) {
		o := s.m.opts.Queue.ReadStates(s.m.meteredContext(m), []queue.StateRead{read})[0]
		return o.Value, o.Err
	}, func(page queue.StatePage, err error) {
		fields, next := page.Show(state.Filter{State: true, Prefix: prefix})
		s.answer(wire.Event{
			Type: wire.TypeState, Ref: req.Ref, Channel: req.Channel, ID: &page.ID,
			StateEvent: &wire.StateEvent{Fields: fields, Cursor: next},
		}, err)
	})
}

func (s *Session) checkReadState(req wire.Request, prefix string) error {
	err := checkChannel(req)
	if err == nil {
		err = s.permissions().checkState(req.Channel, prefix)
	}
	if err == nil {
		err = s.checkSubscribed(req.Channel)
	}
	switch {
	case err != nil:
		return err
	case !req.Ref.Set:
		return wire.Errorf(wire.BadRequest, "ref: missing; the answer could be taken for a page of a subscription")
	case req.Limit < 0 || req.Limit > maxStateFields:
		return wire.Errorf(wire.BadRequest, "limit: %d is not within 1 and %d", req.Limit, maxStateFields)
	case req.Cursor != "" && state.CheckName(req.Cursor) != nil:
		return wire.BadCursor()
	}
	return nil
}
