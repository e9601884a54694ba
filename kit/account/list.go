package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

const (
	// projectDelay is when the round shows a change in the list whose process has stopped.
	projectDelay = 10 * time.Second
	// sweepDelay is when the round looks at a name that was claimed or left. The claim has ended
	// then.
	sweepDelay = claimLease + 5*time.Second
	// taskLease is how long one broker has for a task of the round. It is longer than both delays.
	taskLease = time.Minute
	// roundInterval is the mean interval of the rounds.
	roundInterval = 2 * time.Second
	// roundSize is the most tasks that a broker takes at once.
	roundSize = 100
	// nameTask is the prefix of tasks for names, and userTask that of tasks for users that have ended.
	// Ids of accounts do not have them.
	nameTask = "name."
	userTask = "user."
)

// allAccounts is the list of all accounts. There is one more for each state, named like it.
const allAccounts = "all"

// card returns the entry of an account in the lists: by the time of its registration.
func card(id string, version int64, r *record) index.Card {
	return index.Card{
		ID: id, Version: version, Lists: map[string]int64{allAccounts: r.Created, string(r.State): r.Created}, Data: kit.JSON(r.card(id)),
	}
}

// Page is a part of the list of accounts.
type Page struct {
	Accounts []json.RawMessage `json:"accounts"` // each an Account
	Cursor   string            `json:"cursor,omitempty"`
	Total    int               `json:"total"` // accounts in the list
}

// All selects accounts in all states, see [Accounts.List].
const All State = "all"

// List returns accounts in the order of their registration, the newest first. state is All, or ""
// for those that are not deleted. The list may be some seconds old.
func (a *Accounts) List(ctx context.Context, state State, cursor string, limit int) (Page, error) {
	list := string(state)
	switch state {
	case "", All:
		list = allAccounts
	case Open, Locked, Deleted:
	default:
		return Page{}, wire.Errorf(wire.BadRequest, "state: want open, locked, deleted or all")
	}
	if err := kit.PageLimit(&limit, true); err != nil {
		return Page{}, err
	}
	p, err := a.index.List(ctx, index.Query{List: list, Cursor: cursor, Limit: limit, Descending: true})
	if err != nil {
		return Page{}, err
	}
	counts, err := a.index.Count(ctx, list, string(Deleted))
	if err != nil {
		return Page{}, err
	}
	page := Page{Accounts: []json.RawMessage{}, Cursor: p.Next, Total: counts[0]}
	if state == "" {
		page.Total -= counts[1]
	}
	for _, c := range p.Cards {
		var card Account
		if err := json.Unmarshal(c.Data, &card); err != nil {
			return Page{}, fmt.Errorf("card of account %s: %w", c.ID, err)
		}
		if state == "" && card.State == Deleted {
			continue
		}
		shown, err := withVersion(card, c)
		if err != nil {
			return Page{}, err
		}
		page.Accounts = append(page.Accounts, shown)
	}
	return page, nil
}

// withVersion returns the JSON of the account that a card shows.
func withVersion(a Account, c index.Card) (json.RawMessage, error) {
	if a.Version != 0 {
		return c.Data, nil
	}
	a.Version = c.Version
	return json.Marshal(a)
}

// rounds are those over accounts, names and users that have ended.
func (a *Accounts) rounds() *kit.Rounds {
	return &kit.Rounds{Index: a.index, Lease: a.opts.Rounds, Every: roundInterval, TaskLease: taskLease, Batch: roundSize}
}

// Run finishes what processes that stopped have left, until ctx ends.
func (a *Accounts) Run(ctx context.Context) error {
	return a.rounds().Run(ctx, a.log, "accounts", a.Round)
}

// Round does the tasks that are due: it frees names that no account has, shows changes in the list,
// and removes accounts that have ended from it.
func (a *Accounts) Round(ctx context.Context) error {
	rounds := a.rounds()
	return errors.Join(a.endRound(ctx), rounds.Take(ctx, func(tasks []index.Task, _ time.Duration) error {
		var ended, rest []index.Task
		for _, t := range tasks {
			if strings.HasPrefix(t.ID, userTask) {
				ended = append(ended, t)
			} else {
				rest = append(rest, t)
			}
		}
		return errors.Join(rounds.Finish(ctx, rest, a.finish), a.forget(ctx, ended))
	}))
}

// forget makes the extensions forget users whose accounts have ended. After an error, the tasks are
// due again when their leases end.
func (a *Accounts) forget(ctx context.Context, ended []index.Task) error {
	if len(ended) == 0 {
		return nil
	}
	users, done := make([]string, len(ended)), map[index.Task]time.Duration{}
	for i, t := range ended {
		users[i], done[t] = strings.TrimPrefix(t.ID, userTask), 0
	}
	if _, err := a.host.Forget(ctx, users...); err != nil {
		return err
	}
	return a.index.Done(ctx, done)
}

// finish looks at a name or an account. next is the time until it is due again.
func (a *Accounts) finish(ctx context.Context, id string) (next time.Duration, err error) {
	digest, isName := strings.CutPrefix(id, nameTask)
	if !isName {
		return 0, a.show(ctx, id)
	}
	if again, err := a.sweepName(ctx, digest); err != nil || !again {
		return 0, err
	}
	return sweepDelay, nil
}

// show shows the current state of an account in the list.
func (a *Accounts) show(ctx context.Context, id string) error {
	s, err := a.read(ctx, id)
	if err != nil || !s.Exists() { // the registration was refused
		return err
	}
	return a.index.Put(ctx, a.card(id, s.record.ID, &s.record.Value))
}

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
	ids := index.IDs(page.Cards)
	cards, err := a.index.Get(ctx, ids...) // with all lists
	if err != nil {
		return err
	}
	var errs []error
	for i, o := range a.store.ReadStates(ctx, kit.ReadsOf(accountPrefix, ids, queue.StateRead{Fields: []string{recordField}})) {
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
