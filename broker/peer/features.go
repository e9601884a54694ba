package peer

import (
	"net/http"
	"strings"
)

// headerFeatures is the header in which each end of a link lists its features, separated by
// commas. Versions without features do not send it, and unknown features are ignored.
const headerFeatures = "Switchboard-Peer-Features"

// features is a set of what an end of a link can do.
type features uint8

const (
	// counts: the sender counts the hints to each server from the start of its process, also without
	// a link. So the number of the first batch can be compared, too.
	counts features = 1 << iota
	// goodbye: the sender announces that it sends no more hints.
	goodbye
)

var featureNames = []struct {
	feature features
	name    string
}{{counts, "counts"}, {goodbye, "goodbye"}}

func (f features) has(one features) bool { return f&one != 0 }

// set sets the header to f.
func (f features) set(header http.Header) {
	var names []string
	for _, n := range featureNames {
		if f.has(n.feature) {
			names = append(names, n.name)
		}
	}
	header.Set(headerFeatures, strings.Join(names, ","))
}

func readFeatures(header http.Header) (f features) {
	for name := range strings.SplitSeq(header.Get(headerFeatures), ",") {
		for _, n := range featureNames {
			if strings.TrimSpace(name) == n.name {
				f |= n.feature
			}
		}
	}
	return f
}

// supported are the features of this version, as the dialer and as the listener.
const supported = counts | goodbye
