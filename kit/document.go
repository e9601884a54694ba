package kit

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/extension"
	"switchboard/internal/wire"
	"switchboard/janitor/task"
	"switchboard/kit/budget"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Documents are the documents of a kind whose cards show one field of them, the record: accounts,
// avatars and scenes. A check reads them with States and Index alone.
type Documents[D interface{ Exists() bool }] struct {
	Kind   string // names one in errors and the log, such as avatar
	Prefix string // of the channels
	Record string // the field; its id is the version of the card

	States StateReader
	Index  index.Index
	// Whole is what an operation reads of a document, and Brief what a list and a check read.
	Whole, Brief queue.StateRead
	// Parse makes a document of what was read. If there is none, Exists of the result is false.
	Parse func(id string, page *queue.StatePage) (D, error)
	// Card returns what the record shows in the lists.
	Card func(D) index.Card

	// CheckID returns an error for an id that no document can have.
	CheckID func(id string) error
	// Delay is when a round looks at a document after a change.
	Delay time.Duration
	Log   zerolog.Logger
}

// Find returns the document with an id that one can have. It may not exist.
func (d *Documents[D]) Find(ctx context.Context, id string) (none D, err error) {
	list, err := ReadEach(ctx, d.States, d.Prefix, []string{id}, d.Whole, d.Parse)
	if err != nil {
		return none, err
	}
	return list[0], nil
}

// Get returns a document, or a not_found error if it does not exist.
func (d *Documents[D]) Get(ctx context.Context, id string) (none D, err error) {
	if err := d.CheckID(id); err != nil {
		return none, err
	}
	one, err := d.Find(ctx, id)
	if err == nil && !one.Exists() {
		err = d.NotFound(id)
	}
	return one, err
}

// NotFound is the error for a document that does not exist.
func (d *Documents[D]) NotFound(id string) error {
	return wire.Errorf(wire.NotFound, "there is no %s %s", d.Kind, id)
}

// Each returns documents in the order of their ids, as lists need them.
func (d *Documents[D]) Each(ctx context.Context, ids []string) ([]D, error) {
	return ReadEach(ctx, d.States, d.Prefix, ids, d.Brief, d.Parse)
}

// Edit calls change with the document until its error is not ErrChanged, see [Retry]. It returns
// the document as change leaves it.
func (d *Documents[D]) Edit(ctx context.Context, id string, change func(D) error) (D, error) {
	return Retry(ctx, d.Kind+" "+id, func() (D, error) {
		one, err := d.Get(ctx, id)
		if err == nil {
			err = change(one)
		}
		return one, err
	})
}

// Note notes on the due list that documents are about to change, so that a round computes their
// cards if this process stops.
func (d *Documents[D]) Note(ctx context.Context, ids ...string) error {
	return d.Index.Schedule(ctx, d.Delay, ids...)
}

// Show puts a card into the lists. If that fails, the round does it.
func (d *Documents[D]) Show(ctx context.Context, card index.Card) {
	if err := d.Index.Put(ctx, card); err != nil {
		d.Log.Warn().Err(err).Str(d.Kind, card.ID).Msgf("the list of %ss is late", d.Kind)
	}
}

// List returns the documents of a page of a list that exist and that keep accepts: the list may be
// some seconds old. next is the cursor of the next page, or "".
func (d *Documents[D]) List(ctx context.Context, q index.Query, keep func(D) bool) (list []D, next string, err error) {
	return ReadPage(ctx, d.Index, q, true, func(ctx context.Context, cards []index.Card) ([]D, error) {
		return d.Each(ctx, index.IDs(cards))
	}, func(one D) bool { return one.Exists() && keep(one) })
}

// Compare returns the visit of a check that compares the cards of documents with their records.
func (d *Documents[D]) Compare(f *Findings) Visit {
	const remedy = "brokers correct it some minutes after a failover; if it stays, any change of the record writes the card again"
	return func(ctx context.Context, ids []string) error {
		records, err := d.Each(ctx, ids)
		if err != nil {
			return err
		}
		cards, err := d.Index.Get(ctx, ids...)
		if err != nil {
			return err
		}
		for i, card := range cards {
			switch channel := d.Prefix + ids[i]; {
			case !records[i].Exists() && card.ID != "":
				f.Add(channel, remedy, "it has a card, but no record")
			case !records[i].Exists():
			case card.ID == "":
				f.Add(channel, remedy, "it has no card")
			case !SameCard(card, d.Card(records[i])):
				f.Add(channel, remedy, "its card is not that of the record with the id %d", d.Card(records[i]).Version)
			}
		}
		return nil
	}
}

// Restore returns a round of a janitor that makes the brokers compute again the cards that are not
// there, or older than the records.
func (d *Documents[D]) Restore(name string, states States) task.Round {
	return Restore(CheckOptions{Index: d.Index, States: states}, Restored{Name: name, Prefix: d.Prefix, Record: d.Record})
}

// Owned returns documents that a budget counts as what users own. forget removes those of one user,
// and returns how many there were.
func Owned(kind string, b *budget.Budget, forget func(ctx context.Context, user string) (removed int, err error)) []extension.Owned {
	return []extension.Owned{{Kind: kind, Usage: b.Usage, Forget: func(ctx context.Context, users []string) (removed int, err error) {
		for _, user := range users {
			n, err := forget(ctx, user)
			if removed += n; err != nil {
				return removed, err
			}
		}
		return removed, b.Forget(ctx, users...)
	}}}
}
