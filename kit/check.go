package kit

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/janitor/task"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Findings are what one look of a check has found.
type Findings struct {
	list  []task.Finding
	known map[task.Finding]bool
}

// Add adds a finding, unless the look has it.
func (f *Findings) Add(channel, remedy, format string, args ...any) {
	one := task.Finding{Subject: channel, Problem: fmt.Sprintf(format, args...), Remedy: remedy}
	if !f.known[one] {
		f.known[one], f.list = true, append(f.list, one)
	}
}

// SameCard reports whether two cards are equal. A zero card is none.
func SameCard(a, b index.Card) bool {
	return a.ID == b.ID && a.Version == b.Version && maps.Equal(a.Lists, b.Lists) && bytes.Equal(a.Data, b.Data)
}

// Check returns a check of documents. Differences last for a moment while a document changes, so
// that it looks twice.
func Check(name string, look func(ctx context.Context, f *Findings) error) task.Check {
	return task.Check{Name: name, Apart: task.Apart, Find: func(ctx context.Context) ([]task.Finding, error) {
		f := Findings{known: map[task.Finding]bool{}}
		err := look(ctx, &f)
		return f.list, err
	}}
}

// checkBatch is how many documents a check reads at once.
const checkBatch = 100

// A Visit looks at documents, at most 100.
type Visit = func(ctx context.Context, ids []string) error

// EachBatch calls the visits for all documents by their channels, each once: a document without a
// card is in no list. A visit is for the channels with a prefix, whose rest is the id. known are
// the channels of documents.
func EachBatch(ctx context.Context, s States, visits map[string]Visit) (known map[string]bool, err error) {
	known, ids := map[string]bool{}, map[string][]string{}
	for channel, err := range s.StateChannels(ctx) {
		if err != nil {
			return known, err
		}
		for prefix, visit := range visits {
			id, found := strings.CutPrefix(channel, prefix)
			if !found || known[channel] {
				continue
			}
			known[channel], ids[prefix] = true, append(ids[prefix], id)
			if len(ids[prefix]) == checkBatch {
				if err := visit(ctx, ids[prefix]); err != nil {
					return known, err
				}
				ids[prefix] = nil
			}
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(ids)) { // equal findings in each look
		if rest := ids[prefix]; len(rest) > 0 {
			if err := visits[prefix](ctx, rest); err != nil {
				return known, err
			}
		}
	}
	return known, nil
}

// EachUnknown calls visit for the documents of a list that have no known channel: a document that
// is new, or a card whose document is lost.
func EachUnknown(ctx context.Context, i index.Index, list, prefix string, known map[string]bool, visit Visit) error {
	for cards, err := range index.Pages(ctx, i, index.Query{List: list, Limit: checkBatch}) {
		if err != nil {
			return err
		}
		var ids []string
		for _, c := range cards {
			if !known[prefix+c.ID] {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) > 0 {
			if err := visit(ctx, ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// StatePages iterates over the pages of the state of a channel, beginning with that of the read. It
// ends after an error.
func StatePages(ctx context.Context, r StateReader, read queue.StateRead) iter.Seq2[*queue.StatePage, error] {
	return func(yield func(*queue.StatePage, error) bool) {
		for {
			page, err := ReadState(ctx, r, read)
			if err != nil {
				yield(page, err)
				return
			}
			if read.Cursor = page.Next; !yield(page, nil) || read.Cursor == "" {
				return
			}
		}
	}
}

// States are the states of all channels. The queues implement it.
type States interface {
	StateReader
	// StateChannels returns the channels that have a state. A channel may come twice.
	StateChannels(ctx context.Context) iter.Seq2[string, error]
}

// CheckOptions are the stores that a check, or a round of a janitor, reads.
type CheckOptions struct {
	Index  index.Index
	States States
}

// Restored is a kind of documents whose cards a round restores.
type Restored struct {
	// Name is the name of the round.
	Name string
	// Prefix is that of the channels of the documents. The rest of a channel's name is the id.
	Prefix string
	// In is the time until a document without a card is due.
	In time.Duration
	// Record is the field whose id is the version of the card. If it is set, the round also notes
	// documents with an older card. Leave it empty if the brokers look at each document from time to
	// time, as those of [Rounds] do.
	Record string
	// Other is called for each channel without the prefix. Nil means no call.
	Other func(ctx context.Context, channel string) error
}

const (
	// restoreEvery is the interval of the rounds that restore cards.
	restoreEvery = time.Minute
	// RestoreCalm is the interval of such rounds while the store has lost nothing. Each looks at the
	// names of all keys.
	RestoreCalm = time.Hour
	// restoreBatch is how many cards such a round reads in one round trip.
	restoreBatch = 100
	// restoreRecords is how many records a round reads, about: 100 a second.
	restoreRecords = 6000
)

// Restore returns a round of a janitor that finds documents without a card by their channels. A
// failover of the store may have lost cards and due lists that it had acknowledged. The round only
// notes the documents on the due list: the brokers do the rest. It counts those that it noted, so a
// quiet system logs nothing.
func Restore(o CheckOptions, r Restored) task.Round {
	one := restorer{CheckOptions: o, Restored: r}
	return task.Round{Name: r.Name, Every: restoreEvery, Calm: RestoreCalm, Parts: one.further, Do: one.round}
}

// restorer is a round that restores cards.
type restorer struct {
	CheckOptions
	Restored

	// The documents are in so many parts, by the hash of their id. A round compares the versions of
	// one part. The first one only counts the documents.
	parts, part uint32
}

func (r *restorer) round(ctx context.Context) (restored int, err error) {
	ids, documents := make([]string, 0, restoreBatch), 0
	for channel, err := range r.States.StateChannels(ctx) {
		if err != nil {
			return restored, err
		}
		if id, found := strings.CutPrefix(channel, r.Prefix); found {
			ids = append(ids, id)
			documents++
		} else if r.Other != nil {
			if err := r.Other(ctx, channel); err != nil {
				return restored, err
			}
		}
		if len(ids) == restoreBatch {
			n, err := r.note(ctx, ids)
			if restored += n; err != nil {
				return restored, err
			}
			ids = ids[:0]
		}
	}
	n, err := r.note(ctx, ids)
	r.parts, r.part = uint32(documents/restoreRecords)+1, r.part+1
	return restored + n, err
}

// further returns in how many further rounds the versions of all documents are compared.
func (r *restorer) further() int {
	if r.Record == "" {
		return 1
	}
	return int(r.parts)
}

// note makes the documents due whose card is not there, or older than the record, and returns their
// number. A document that has ended has no fields and no card: its channel is listed until the
// records of the owners of its fields have ended, too.
func (r *restorer) note(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	versions, err := r.Index.Versions(ctx, ids...)
	if err != nil {
		return 0, err
	}
	var reads []queue.StateRead
	var read []int // their positions in ids
	for i, version := range versions {
		switch {
		case version == 0:
			reads = append(reads, queue.StateRead{Channel: r.Prefix + ids[i], Limit: 1})
		case r.compares(ids[i]):
			reads = append(reads, queue.StateRead{Channel: r.Prefix + ids[i], Fields: []string{r.Record}})
		default:
			continue
		}
		read = append(read, i)
	}
	if len(reads) == 0 {
		return 0, nil
	}
	var due []string
	for i, o := range r.States.ReadStates(ctx, reads) {
		if o.Err != nil {
			return 0, fmt.Errorf("read the state of %s: %w", reads[i].Channel, o.Err)
		}
		version := versions[read[i]]
		if fields := o.Value.Fields; len(fields) > 0 && (version == 0 || fields[0].ID > version) {
			due = append(due, ids[read[i]])
		}
	}
	if len(due) == 0 {
		return 0, nil
	}
	return len(due), r.Index.Schedule(ctx, r.In, due...)
}

// compares reports whether a document is in the part whose versions the round compares.
func (r *restorer) compares(id string) bool {
	if r.Record == "" || r.parts == 0 {
		return false
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // it never fails
	return h.Sum32()%r.parts == r.part%r.parts
}
