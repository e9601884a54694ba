package session

import (
	"math"
	"slices"
	"time"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// decision is the entry that applies to a channel: of the token and the lists, the latest.
type decision struct {
	registry.Subscription
	claim bool // it is of the token
}

// same returns whether the backend has decided nothing new since d: a token that is renewed
// repeats the claim.
func (d decision) same(other decision) bool {
	return d.Channel == other.Channel && d.claim == other.claim && (d.claim || d.Subscription == other.Subscription)
}

// decide returns the decision for each channel that a token or a list names. A token is as old as
// its claim to have been issued; if it has none, each call is later.
func decide(claim claimedSubs, lists registry.Subscriptions) []decision {
	all := make([]decision, 0, len(claim.channels)+len(lists.User)+len(lists.Client))
	for _, channel := range claim.channels {
		of := registry.Subscription{Channel: channel, Kind: registry.Subscribed, At: 1000 * claim.issued, After: -1}
		all = append(all, decision{of, true})
	}
	for _, list := range [][]registry.Subscription{lists.User, lists.Client} {
		for _, entry := range list {
			i := slices.IndexFunc(all, func(d decision) bool { return d.Channel == entry.Channel })
			switch {
			case i < 0:
				all = append(all, decision{entry, false})
			case all[i].At <= entry.At:
				all[i] = decision{entry, false}
			}
		}
	}
	return all
}

// subscribedChannels returns the channels to which the backend subscribes a client.
func subscribedChannels(claim claimedSubs, lists registry.Subscriptions) (channels []string) {
	if lists.Empty() {
		return claim.channels
	}
	for _, d := range decide(claim, lists) {
		if d.Kind == registry.Subscribed {
			channels = append(channels, d.Channel)
		}
	}
	return channels
}

// nextBackendSubs returns the subscriptions of the backend that follow before. Those that are new
// are due. ended are the channels from which the backend has unsubscribed the client since; recheck
// ends the others that are gone, unless the access rules allow them.
//
// since is when the client was connected before, Unix ms, for a session that has just been opened:
// what the backend has decided before is not new for the client. It is 0 for another session.
func nextBackendSubs(before *backendSubs, claim claimedSubs, lists registry.Subscriptions, since int64) (next *backendSubs, ended []string) {
	if len(claim.channels) == 0 && lists.Empty() {
		return nil, nil
	}
	next = &backendSubs{claim: claim, lists: lists}
	var former []decision
	if before == nil {
		before = new(backendSubs)
	} else {
		former = decide(before.claim, before.lists)
	}
	for _, d := range decide(claim, lists) {
		isNew := d.At >= 1000*since && !slices.ContainsFunc(former, d.same)
		switch d.Kind {
		case registry.Subscribed:
			next.add(before, d, isNew)
		case registry.Unsubscribed:
			i := slices.IndexFunc(before.left, func(l leftChannel) bool { return l.channel == d.Channel })
			switch {
			case isNew && since == 0:
				ended = append(ended, d.Channel)
				next.left = append(next.left, leftChannel{d.Channel, true})
			case isNew:
				next.left = append(next.left, leftChannel{d.Channel, false})
			case i >= 0:
				next.left = append(next.left, before.left[i])
			}
		}
	}
	return next, ended
}

// add adds a channel to which the backend subscribes the client.
func (b *backendSubs) add(before *backendSubs, d decision, isNew bool) {
	known := slices.Contains(before.channels, d.Channel)
	b.channels = append(b.channels, d.Channel)
	if known && slices.Contains(before.adopted, d.Channel) {
		b.adopted = append(b.adopted, d.Channel)
	}
	due := dueSub{channel: d.Channel}
	for _, w := range slices.Concat(before.due, before.retry) {
		if w.channel == d.Channel {
			due = w
		}
	}
	if isNew && d.After >= 0 {
		due.after = &d.After
	}
	if !known || before.waits(d.Channel) || isNew && !d.claim {
		b.due = append(b.due, due)
	}
}

// backendUnsubscribed returns the reason for which a subscription ends or is not resumed.
func backendUnsubscribed(channel string) *wire.Error {
	return wire.Errorf(wire.Forbidden, "channel %s: the backend has unsubscribed the client", channel)
}

// rejoin refuses to resume a subscription that the backend has ended while the client was away.
// After that, and without a position, the client subscribes anew, and the store takes a note of it.
func (s *Session) rejoin(channel string, resumes bool) error {
	b := s.backendSubs()
	if b == nil {
		return nil
	}
	i := slices.IndexFunc(b.left, func(l leftChannel) bool { return l.channel == channel })
	if i < 0 {
		return nil
	}
	if resumes && !b.left[i].told {
		b.left[i].told = true
		return backendUnsubscribed(channel)
	}
	b.left = slices.Delete(b.left, i, i+1)
	change := registry.SubscriptionChange{
		User: s.user(), Client: s.client, Channels: []string{channel}, Kind: registry.Rejoined, After: -1,
	}
	m := s.m
	m.opts.Pool.Go(func() {
		if _, err := m.opts.Registry.Subscribe(m.storeContext(), change); err != nil {
			m.opts.Logger.Warn().Err(err).Msg("the client's next connect cannot resume a channel that it has joined again")
		}
	})
	return nil
}

// adoptBackendSub notes that the client subscribes by itself to a channel to which the backend has
// subscribed it. It returns true the first time.
func (s *Session) adoptBackendSub(channel string) bool {
	b := s.backendSubs()
	if b == nil || !slices.Contains(b.channels, channel) || slices.Contains(b.adopted, channel) {
		return false
	}
	b.adopted = append(b.adopted, channel)
	return true
}

// setIdentity applies a verified identity, at connect and after each refresh. The use of publish
// rates carries over. lists and since are of a connect, see nextBackendSubs.
func (s *Session) setIdentity(identity Identity, lists registry.Subscriptions, since int64) {
	s.expires = 0
	if s.user() != "" {
		s.credential.setIssued(identity.Issued)
	}
	if !identity.Expires.IsZero() {
		s.expires = uint32(min(max(1, identity.Expires.Unix()), math.MaxUint32)) // enough until the year 2106
	}
	s.shard.checkBy(s, s.shard.nextCheck(s, s.m.currentTick.Load(), time.Now().Unix()))
	if s.profile() == nil && identity.plain() && lists.Empty() {
		return // without the allocation below
	}
	next := profile{info: identity.Info, grants: identity.Grants}
	if before := s.profile(); before != nil {
		next.publishes, next.reading = before.publishes, before.reading
	}
	if b := s.backendSubs(); b != nil {
		lists = b.lists
	}
	// Only a call of the backend ends subscriptions here. The lists are those that the session has.
	next.backend, _ = nextBackendSubs(s.backendSubs(), claimedSubs{identity.Subscribe, identity.Issued}, lists, since)
	if !next.empty() || s.extra != nil {
		s.ensureExtra().profile = &next
		s.dropEmptyProfile()
	}
}

// plain returns whether an identity needs no profile.
func (i *Identity) plain() bool {
	return i.Info == nil && i.Grants.Empty() && len(i.Subscribe) == 0
}
