package account

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"switchboard/kit/index"
	"switchboard/queue"
)

// endList is the list of the accounts that may end, by the time of the next look, Unix ms. The
// store ends an account itself: each update says for how long the account is kept after it. The
// list only tells when its card has to go.
const endList = "ends"

// life returns how long an account stays after an update. 0 means that it does not end.
func (a *Accounts) life(r *record) time.Duration {
	if r.State == Deleted {
		return a.opts.DeletedLife
	}
	if r.Name == "" {
		return a.opts.GuestLife
	}
	return a.opts.AccountLife
}

// card returns the card of an account with the time of the first look at its end.
func (a *Accounts) card(id string, version int64, r *record) index.Card {
	c := card(id, version, r)
	if life := a.life(r); life > 0 {
		c.Lists[endList] = queue.TimeOf(version).Add(life).UnixMilli()
	}
	return c
}

// endRound looks at the accounts whose end may have come, at most roundSize, in one round trip.
func (a *Accounts) endRound(ctx context.Context) error {
	page, err := a.index.List(ctx, index.Query{List: endList, Max: now(), Limit: roundSize})
	if err != nil || len(page.Cards) == 0 {
		return err
	}
	ids := make([]string, len(page.Cards))
	reads := make([]queue.StateRead, len(page.Cards))
	for i, c := range page.Cards {
		ids[i], reads[i] = c.ID, queue.StateRead{Channel: accountPrefix + c.ID, Fields: []string{recordField}}
	}
	cards, err := a.index.Get(ctx, ids...) // with all lists
	if err != nil {
		return err
	}
	var errs []error
	for i, o := range a.store.ReadStates(ctx, reads) {
		switch {
		case o.Err != nil:
			errs = append(errs, o.Err)
		case cards[i].ID == "": // another broker was faster
		case len(o.Value.Fields) > 0:
			errs = append(errs, a.lookLater(ctx, cards[i], o.Value.KeepUntil))
		default:
			errs = append(errs, a.endCard(ctx, cards[i]))
		}
	}
	return errors.Join(errs...)
}

// lookLater notes the end of an account that was used since the last look. -1 means that it does
// not end any more.
func (a *Accounts) lookLater(ctx context.Context, c index.Card, end int64) error {
	if c.Lists[endList] = max(end, now()); end < 0 {
		delete(c.Lists, endList)
	}
	return a.index.Put(ctx, c)
}

// endCard removes the card of an account that has ended. Before, it schedules the end of the name,
// and that the extensions forget the user.
func (a *Accounts) endCard(ctx context.Context, c index.Card) error {
	if err := a.index.Schedule(ctx, 0, userTask+c.ID); err != nil {
		return err
	}
	var shown Account
	if err := json.Unmarshal(c.Data, &shown); err == nil && shown.Name != "" {
		if err := a.index.Schedule(ctx, 0, nameTask+named(shown.Name).digest); err != nil {
			return err
		}
	}
	return a.index.Put(ctx, index.Card{ID: c.ID, Version: c.Version})
}
