package session

import (
	"cmp"
	"context"

	"switchboard/broker/dialect"
	"switchboard/broker/namespace"
	"switchboard/internal/meter"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

const (
	// maxHistory is the most messages of one history answer.
	maxHistory = 256
	// historyBytes is how much of the channel is read for an answer. It is more than the 32 KiB of
	// payloads that fit one write, because it includes the ids.
	historyBytes = 36 << 10
	// maxHidden is how much of the channel is read for an answer if the client sees none of it.
	maxHidden = 1 << 20
)

// history sends a page of a channel's stored messages. It shows their changes of the state only if
// the message asks for them.
func (s *Session) history(req wire.Request) {
	filter, err := s.checkHistory(req)
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	var after int64
	if seen := s.m.opts.Hub.ResumeCursor(req.After); seen != nil {
		after = *seen
	}
	read := queue.ChannelRead{Channel: req.Channel, After: after, Limit: cmp.Or(req.Limit, maxHistory), Bytes: historyBytes}
	call(s, weight(req), func(m *meter.Meter) (historyPage, error) {
		return s.m.readHistory(s.m.meteredContext(m), read, filter)
	}, func(page historyPage, err error) {
		s.chargeBytes(page.bytes)
		answer := wire.Event{
			Type: wire.TypeHistory, Ref: req.Ref, Channel: req.Channel,
			Messages: &page.messages, More: page.more, Recovered: &page.complete,
		}
		if page.more {
			answer.ID = &page.last
		}
		s.answer(answer, err)
	})
}

// historyPage is an answer to a history message.
type historyPage struct {
	messages []wire.Stored
	more     bool
	complete bool
	bytes    int   // for which the answer is charged
	last     int64 // the id of the last message that was read
}

// readHistory reads a page of a channel's stored messages. It reads on while the filter hides
// all messages that were read, up to maxHidden: clients of earlier releases cannot continue from an
// empty page.
func (m *Manager) readHistory(ctx context.Context, read queue.ChannelRead, filter state.Filter) (h historyPage, err error) {
	h.messages, h.more, h.complete = []wire.Stored{}, true, true
	for progress := true; progress && h.more && len(h.messages) == 0 && h.bytes < maxHidden; {
		o := m.opts.Queue.ReadChannels(ctx, []queue.ChannelRead{read})[0]
		if o.Err != nil {
			return h, o.Err
		}
		page := o.Value
		// An answer is at most one write, because the server must buffer what the socket does not
		// take.
		n := dialect.Fitting(page.Messages, func(m queue.Message) int { return len(m.Data) })
		h.more = page.More || n < len(page.Messages)
		h.complete = h.complete && page.Complete
		progress = n > 0
		for _, message := range page.Messages[:n] {
			h.bytes += len(message.Data)
			h.add(m, message, filter)
			h.last, read.After = message.ID, message.ID
		}
	}
	return h, nil
}

// add adds what the filter shows of a message.
func (h *historyPage) add(m *Manager, message queue.Message, filter state.Filter) {
	if _, _, lost := queue.Loss(message.Data); lost {
		h.complete = false
		return
	}
	shown, ok, err := state.ShowStored(message.ID, message.Data, filter)
	if err != nil {
		m.opts.Logger.Error().Err(err).Int64("id", message.ID).Msg("a message is skipped")
	} else if ok {
		h.messages = append(h.messages, shown)
	}
}

// checkHistory checks a history message, and returns what the answer shows of the messages.
func (s *Session) checkHistory(req wire.Request) (filter state.Filter, err error) {
	perms := s.permissions()
	if err = checkChannel(req); err == nil {
		err = perms.check(namespace.History, req.Channel)
	}
	if err == nil {
		err = s.checkSubscribed(req.Channel)
	}
	switch selector := selectorOf(req); {
	case err != nil:
	case selector == nil:
		filter = perms.authorFilter(req.Channel)
	default:
		if err = perms.checkState(req.Channel, selector.Prefix); err == nil {
			filter = perms.filter(req.Channel, selector.Prefix)
		}
	}
	if err == nil && (req.Limit < 0 || req.Limit > maxHistory) {
		err = wire.Errorf(wire.BadRequest, "limit: %d is not within 1 and %d", req.Limit, maxHistory)
	}
	return filter, err
}

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
