package auth

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/internal/backend"
)

const (
	// askGap is how long no token with an unknown kid leads to another fetch: whoever sends invented ones must not
	// have us ask for each.
	askGap = 30 * time.Second
	// askWait is how long a token waits for such a fetch, and askers how many wait at once: the workers that they hold
	// serve everybody.
	askWait = 3 * time.Second
	askers  = 16
	// longestPause bounds the pause after a fetch that failed.
	longestPause = time.Minute
)

// RemoteOptions configures a Remote. URL is required.
type RemoteOptions struct {
	// URL is of a JWK set (RFC 7517 §5): https, or http on the loopback address.
	URL string
	// Every is how often it is fetched. Zero means 10 min.
	Every time.Duration
	// Grace is how long a key is good that the set does not have any more. Zero means 10 min.
	Grace time.Duration
	// Stale is how long the keys are good when the set cannot be fetched any more. Zero means 24 h.
	Stale time.Duration
	// Transport makes the calls. Nil means one that checks where redirects lead.
	Transport http.RoundTripper
	// Now is the clock. Zero means time.Now.
	Now func() time.Time
}

// Remote is a key set that is fetched, and fetched again. Until it was fetched once, and when it could not be for
// longer than Stale, no key is known and find says ErrUnready: a client comes back then, while a bad token is
// told not to.
type Remote struct {
	opts    RemoteOptions
	client  *http.Client
	asked   chan struct{} // one slot: a key is missed
	waiting chan struct{} // a place for each that waits for a fetch

	mu      sync.Mutex // guards the fields below
	named   map[keyID]held
	unnamed map[string]map[[sha256.Size]byte]held // by alg
	fetched time.Time                             // the last time that it went well
	ask     time.Time                             // before this a missed key is not asked for
	failing bool                                  // the last fetch went wrong
	flight  chan struct{}                         // closed at the end of a fetch that somebody waits for; nil without
}

// held is a key. gone is when the set was first seen without it.
type held struct {
	key  jwt.VerificationKey
	gone time.Time
}

// NewRemote checks the options. Nothing is fetched before Run.
func NewRemote(opts RemoteOptions) (*Remote, error) {
	opts.Every = cmp.Or(opts.Every, 10*time.Minute)
	opts.Grace = cmp.Or(opts.Grace, 10*time.Minute)
	opts.Stale = cmp.Or(opts.Stale, 24*time.Hour)
	u, err := url.Parse(opts.URL)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("it is no URL") // which may hold a password
	case !backend.Trusted(u):
		return nil, errors.New("the scheme must be https: who can change the keys on their way can be anybody")
	case opts.Stale < opts.Every:
		return nil, fmt.Errorf("keys that are good for %v cannot be fetched every %v only", opts.Stale, opts.Every)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	transport := opts.Transport
	if transport == nil {
		transport = newFetchTransport(u)
	}
	return &Remote{
		opts: opts, client: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		asked: make(chan struct{}, 1), waiting: make(chan struct{}, askers),
		named: map[keyID]held{}, unnamed: map[string]map[[sha256.Size]byte]held{},
	}, nil
}

// find gives the keys of alg that id names; without an id those without a name. The error is ErrUnready
// when they may exist and be unknown here.
func (r *Remote) find(id, alg string) ([]jwt.VerificationKey, error) {
	keys, flight, err := r.look(id, alg)
	if len(keys) > 0 || err != nil || flight == nil {
		return keys, err
	}
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
	default:
		return nil, ErrUnready
	}
	patience := time.NewTimer(askWait)
	defer patience.Stop()
	select {
	case <-flight:
		keys, _, err = r.look(id, alg) // askGap keeps this from asking again
		return keys, err
	case <-patience.C:
		return nil, ErrUnready
	}
}

// look is find without the wait. When the key is missed and may be asked for, flight ends with the fetch.
func (r *Remote) look(id, alg string) (keys []jwt.VerificationKey, flight <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Now()
	known := !r.staleLocked(now)
	if known {
		if keys = r.keysLocked(id, alg, now); len(keys) > 0 {
			return keys, nil, nil
		}
	}
	if r.flight == nil && !now.Before(r.ask) {
		r.ask, r.flight = now.Add(askGap), make(chan struct{})
		select {
		case r.asked <- struct{}{}:
		default:
		}
	}
	if r.flight == nil && (!known || r.failing) { // the key may be there, where we cannot look
		return nil, nil, ErrUnready
	}
	return nil, r.flight, nil
}

func (r *Remote) keysLocked(id, alg string, now time.Time) (keys []jwt.VerificationKey) {
	good := func(h held) bool { return h.gone.IsZero() || now.Before(h.gone.Add(r.opts.Grace)) }
	if id != "" {
		if h, ok := r.named[keyID{id, alg}]; ok && good(h) {
			keys = append(keys, h.key)
		}
		return keys
	}
	for _, h := range r.unnamed[alg] {
		if good(h) {
			keys = append(keys, h.key)
		}
	}
	return keys
}

// staleLocked says whether no key is to be believed.
func (r *Remote) staleLocked(now time.Time) bool {
	return r.fetched.IsZero() || now.Sub(r.fetched) > r.opts.Stale
}

func (r *Remote) unready() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fetched.IsZero():
		return "the keys that tokens are signed with could not be fetched yet"
	case r.staleLocked(r.opts.Now()):
		return "the keys that tokens are signed with could not be fetched for too long"
	}
	return ""
}

// Keys is how many keys are known, and Age how long ago they were fetched; zero when never.
func (r *Remote) Keys() (keys int, age time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fetched.IsZero() {
		return 0, 0
	}
	keys = len(r.named)
	for _, set := range r.unnamed {
		keys += len(set)
	}
	return keys, r.opts.Now().Sub(r.fetched)
}

// same says whether both fetch alike.
func (r *Remote) same(other *Remote) bool {
	if r == nil || other == nil {
		return r == other
	}
	a, b := r.opts, other.opts
	return a.URL == b.URL && a.Every == b.Every && a.Grace == b.Grace && a.Stale == b.Stale
}
