package registry

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// ErrTooManySubscriptions is returned by Subscribe if the list would have more than
// MaxSubscriptions channels. Nothing was changed.
var ErrTooManySubscriptions = errors.New("registry: too many subscriptions in one list")

// MaxSubscriptions is the most channels to which one list subscribes. A list also keeps as many
// other entries, of which the oldest are removed.
const MaxSubscriptions = 64

// SubscriptionKind is what an entry of a list says about its channel.
type SubscriptionKind byte

// The kinds of entries, as in the store.
const (
	Subscribed   SubscriptionKind = '+' // the backend subscribes the client
	Unsubscribed SubscriptionKind = '-' // the backend has unsubscribed the client
	// Rejoined means that the client has subscribed by itself after it was unsubscribed.
	Rejoined SubscriptionKind = '='
)

// Subscription is an entry of a list of subscriptions that the backend has made.
type Subscription struct {
	Channel string
	Kind    SubscriptionKind
	At      int64 // Unix µs, on the store's clock; it grows with each change of the list
	After   int64 // the position at which a first subscription begins; -1 for the present
}

// Subscriptions are the lists that apply to a client, each by At and channel.
type Subscriptions struct {
	User   []Subscription // of all clients of its user
	Client []Subscription // of this client
}

// Empty returns whether there are no entries.
func (s Subscriptions) Empty() bool { return len(s.User)+len(s.Client) == 0 }

// Merge returns the newer list of each kind.
func (s Subscriptions) Merge(other Subscriptions) Subscriptions {
	return Subscriptions{newer(s.User, other.User), newer(s.Client, other.Client)}
}

// newer returns the list that changed last, and b if they are of the same time.
func newer(a, b []Subscription) []Subscription {
	if len(a) > 0 && (len(b) == 0 || a[len(a)-1].At > b[len(b)-1].At) {
		return a
	}
	return b
}

// Subscriber is a client whose lists are read.
type Subscriber struct {
	User, Client string // User is "" for a client without one
	// Held are the lists that the caller has read before. The store takes over what it has lost of
	// them.
	Held Subscriptions
}

// SubscriptionChange changes a list.
type SubscriptionChange struct {
	User     string // "" for a client without one
	Client   string // "" for the list of all clients of the user
	Channels []string
	Kind     SubscriptionKind
	After    int64 // as in Subscription
}

// SubscriptionsChanged is the result of a SubscriptionChange.
type SubscriptionsChanged struct {
	Until int64 // when the store forgets the list, unless a client renews it; Unix ms
	// Clients are the online clients of the user that have the list, sorted by client.
	Clients []Binding
}

// SubscriptionsOutcome is the result of Subscriptions for one Subscriber.
type SubscriptionsOutcome struct {
	Subscriptions
	Err error
}

// sortSubscriptions sorts a list by At and channel.
func sortSubscriptions(list []Subscription) {
	slices.SortFunc(list, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Channel, b.Channel))
	})
}

// entry returns the value of a Subscription in the store: kind, At, and after a colon After.
func (s Subscription) entry() string {
	text := string(rune(s.Kind)) + strconv.FormatInt(s.At, 10)
	if s.After >= 0 {
		text += ":" + strconv.FormatInt(s.After, 10)
	}
	return text
}

// parseSubscription parses the value of a field in the store.
func parseSubscription(channel, value string) (s Subscription, ok bool) {
	if value == "" {
		return s, false
	}
	s = Subscription{Channel: channel, Kind: SubscriptionKind(value[0]), After: -1}
	at, after, found := strings.Cut(value[1:], ":")
	var err error
	if s.At, err = strconv.ParseInt(at, 10, 64); err == nil && found {
		s.After, err = strconv.ParseInt(after, 10, 64)
	}
	known := s.Kind == Subscribed || s.Kind == Unsubscribed || s.Kind == Rejoined
	return s, known && err == nil && s.At > 0 && s.After >= -1
}
