package session

import (
	"cmp"

	"switchboard/broker/dialect"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/queue"
)

const (
	// maxHistory is the most messages of one history answer.
	maxHistory = 256
	// historyBytes is how much of the channel is read for an answer. It is more than the 32 KiB of
	// payloads that fit one write, because it includes the ids.
	historyBytes = 36 << 10
)

// history sends a page of a channel's stored messages.
func (s *Session) history(req wire.Request) {
	err := checkChannel(req)
	if err == nil {
		err = s.permissions().check(namespace.History, req.Channel)
	}
	if err == nil && (req.Limit < 0 || req.Limit > maxHistory) {
		err = wire.Errorf(wire.BadRequest, "limit: %d is not within 1 and %d", req.Limit, maxHistory)
	}
	if err != nil {
		s.refuse(req.Ref, err)
		return
	}
	var after int64
	if seen := s.m.opts.Hub.ResumeCursor(req.After); seen != nil {
		after = *seen
	}
	call(s, func() (queue.Page, error) {
		o := s.m.opts.Queue.ReadChannels(s.m.storeContext(), []queue.ChannelRead{{
			Channel: req.Channel, After: after, Limit: cmp.Or(req.Limit, maxHistory), Bytes: historyBytes,
		}})[0]
		return o.Value, o.Err
	}, func(page queue.Page, err error) {
		stored := make([]wire.Stored, 0, len(page.Messages))
		for _, m := range page.Messages {
			if _, _, lost := queue.Loss(m.Data); lost {
				page.Complete = false
				continue
			}
			stored = append(stored, wire.Stored{ID: m.ID, Data: m.Data})
		}
		// An answer is at most one write, because the server must buffer what the socket does not
		// take.
		n := dialect.Fitting(stored, func(m wire.Stored) int { return len(m.Data) })
		page.More = page.More || n < len(stored)
		stored = stored[:n]
		s.chargeBytes(storedSize(stored))
		s.answer(wire.Event{
			Type: wire.TypeHistory, Ref: req.Ref, Channel: req.Channel,
			Messages: &stored, More: page.More, Recovered: &page.Complete,
		}, err)
	})
}

// storedSize returns the bytes for which a history answer is charged.
func storedSize(messages []wire.Stored) (n int) {
	for _, m := range messages {
		n += len(m.Data)
	}
	return n
}
