package index

import (
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/wire"
)

// Index is the lists of one kind of documents. [Redis] and [Memory] implement it.
type Index interface {
	// Put stores cards. A card is ignored if the stored one has a higher version, or if the id was
	// removed with a higher version within TombstoneAge.
	Put(ctx context.Context, cards ...Card) error
	// Get returns the cards with the ids, in their order. An unknown id has a zero Card.
	Get(ctx context.Context, ids ...string) ([]Card, error)
	// Versions returns the versions of the cards with the ids, in their order. It costs less than Get.
	// An unknown id has the version 0.
	Versions(ctx context.Context, ids ...string) ([]int64, error)
	// List returns a page of a list. A list that does not exist is empty.
	List(ctx context.Context, q Query) (Page, error)
	// Count returns the number of cards in each list.
	Count(ctx context.Context, lists ...string) ([]int, error)
	// Schedule makes the ids due after a time, or earlier if they are due earlier. The time must be
	// shorter than the leases of Take: a longer one is lost if the id is leased, since the caller of
	// Done says when the id is due next.
	Schedule(ctx context.Context, in time.Duration, ids ...string) error
	// Take leases up to n due ids to the caller. An id that is not done within the lease is due again.
	Take(ctx context.Context, n int, lease time.Duration) ([]Task, error)
	// Done ends leases. It makes the id of each task due again after the time of the task, or removes
	// it from the due list if the time is 0. An id that was scheduled or taken again stays as it is.
	Done(ctx context.Context, next map[Task]time.Duration) error
	// Find gives a taker a place of a document, see [Search].
	Find(ctx context.Context, s Search) (Found, error)
	// Sweep forgets removed ids that are older than TombstoneAge, at most n.
	Sweep(ctx context.Context, n int) error
}

// Card is the entry of a document in an index.
type Card struct {
	ID string
	// Version is the id of the channel's message that the card includes.
	Version int64
	// Lists are the lists of the card, with its score in each. A card without lists is removed.
	Lists map[string]int64
	// Data is what readers of the list receive, JSON.
	Data []byte
}

// MaxScore is the highest score; the lowest is 0. Redis stores such scores exactly.
const MaxScore = 1<<53 - 1

// TombstoneAge is how long a removed id is remembered.
const TombstoneAge = time.Hour

// Query selects a page of a list.
type Query struct {
	List string
	// Min and Max bound the scores. A zero Max means no upper bound.
	Min, Max int64
	// Descending lists the highest score first.
	Descending bool
	// Cursor is the Next of the previous page, or "".
	Cursor string
	// Limit is the most cards of the page. Zero means 100.
	Limit int
	// Bytes is the most bytes of the page, approximately, but at least one card. Zero means no limit.
	Bytes int
}

// Page is a part of a list.
type Page struct {
	Cards []Card // Lists has only the list of the query
	Next  string // the cursor of the next page, or "" if there is none
}

// Task is a due id that was leased to a caller.
type Task struct {
	ID    string
	lease int64 // its end, Unix ms; it identifies the lease
}

// ErrBadCursor means that no page returned the cursor.
var ErrBadCursor error = wire.BadCursor()

const defaultLimit = 100

// position is a place in a list: cards are ordered by score, then by id.
type position struct {
	score int64
	id    string
}

func (p position) cursor() string { return strconv.FormatInt(p.score, 10) + ":" + p.id }

func parseCursor(text string) (position, error) {
	score, id, found := strings.Cut(text, ":")
	n, err := strconv.ParseInt(score, 10, 64)
	if !found || err != nil || n < 0 || n > MaxScore {
		return position{}, ErrBadCursor
	}
	return position{n, id}, nil
}

// withDefaults returns the query with all bounds set.
func (q Query) withDefaults() Query {
	if q.Max == 0 {
		q.Max = math.MaxInt64
	}
	q.Min, q.Max = max(q.Min, 0), min(q.Max, MaxScore)
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	return q
}

// from returns the position after which the page begins, or nil if it begins with the list. q has
// all bounds set.
func (q Query) from() (*position, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	p, err := parseCursor(q.Cursor)
	if err != nil || q.Descending && p.score > q.Max || !q.Descending && p.score < q.Min {
		return nil, err
	}
	return &p, nil
}

// After returns the cursor of the page that begins after a card of the list.
func (q Query) After(c Card) string { return position{c.Lists[q.List], c.ID}.cursor() }

var listName = regexp.MustCompile(`^[^\s{}]{1,200}$`)

// check returns an error if a card cannot be stored.
func (c *Card) check() error {
	if c.ID == "" || strings.ContainsAny(c.ID, "\n") {
		return fmt.Errorf("index: %q is not an id", c.ID)
	}
	for list, score := range c.Lists {
		if !listName.MatchString(list) {
			return fmt.Errorf("index: card %s: %q is not the name of a list", c.ID, list)
		}
		if score < 0 || score > MaxScore {
			return fmt.Errorf("index: card %s: list %s: score %d is out of bounds", c.ID, list, score)
		}
	}
	return nil
}

// PlacesList is the list of documents with free places. The score of a card is their number.
const PlacesList = "places"

// Search looks for a document with a free place for one taker. Takers that search at once, in any
// number of processes, are given different places: a place that was given is reserved for its taker
// until the card of the document shows the taker, or for Lease.
//
// The reservations are no truth, as the cards are none: the taker must still be accepted by the
// document, and searches again if it is not.
type Search struct {
	// List is the list of the documents, in the order in which they are filled. Its cards are in
	// PlacesList, too.
	List string
	// Taker is the list that the card of a document enters when it has the taker.
	Taker string
	// Not are documents that have refused the taker.
	Not []string
	// New is the id of the document that is to be made if no other has a place. Others can be given
	// places of it at once. Places is how many it has, and Lists are the lists whose takers it is for;
	// List is one of them.
	New    string
	Places int
	Lists  []string
	// Due makes the document due after this time, or earlier if it is due earlier, see Schedule.
	Due time.Duration
	// Lease is how long the place is reserved.
	Lease time.Duration
}

// Found is the document in which a taker has a place.
type Found struct {
	ID string
	// Made is empty for a document with a card. Otherwise it is the List of the search that has
	// brought up the document, which may not exist yet: each of its takers makes it, unless another
	// one has done so.
	Made string
	// First is set for the taker whose search has brought up the document.
	First bool
}

// check returns an error if a search cannot be made.
func (s *Search) check() error {
	if s.New == "" || strings.ContainsAny(s.New, " \n") || s.Places < 1 {
		return fmt.Errorf("index: search: %q is not the id of a new document with %d places", s.New, s.Places)
	}
	for _, list := range append([]string{s.List, s.Taker}, s.Lists...) {
		if !listName.MatchString(list) {
			return fmt.Errorf("index: search: %q is not the name of a list", list)
		}
	}
	return nil
}

// Pages iterates over the pages of a list, beginning with that of the query. It ends after an
// error.
func Pages(ctx context.Context, i Index, q Query) iter.Seq2[[]Card, error] {
	return func(yield func([]Card, error) bool) {
		for {
			page, err := i.List(ctx, q)
			if !yield(page.Cards, err) || err != nil {
				return
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}

// IDs returns the ids of cards.
func IDs(cards []Card) []string {
	ids := make([]string, len(cards))
	for i := range cards {
		ids[i] = cards[i].ID
	}
	return ids
}
