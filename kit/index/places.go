package index

import (
	"fmt"
	"strings"
	"time"
)

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
