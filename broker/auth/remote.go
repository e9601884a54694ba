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
	// missFetchInterval is the least time between two fetches because of an unknown kid, so that
	// tokens with invented kids do not cause a fetch each.
	missFetchInterval = 30 * time.Second
	// missFetchTimeout is how long a token waits for such a fetch, and maxMissWaiters is how many
	// tokens wait at once. Each holds a worker that other clients need.
	missFetchTimeout = 3 * time.Second
	maxMissWaiters   = 16
	// maxRetryDelay bounds the backoff after failed fetches.
	maxRetryDelay = time.Minute
)

// RemoteOptions configures a Remote. URL is required.
type RemoteOptions struct {
	// URL is the URL of a JWK set (RFC 7517 §5): https, or http on the loopback address.
	URL string
	// Every is the interval between fetches. Zero means 10 min.
	Every time.Duration
	// Grace is how long a key stays valid after the set no longer has it. Zero means 10 min.
	Grace time.Duration
	// Stale is how long the keys stay valid if fetches fail. Zero means 24 h.
	Stale time.Duration
	// Transport makes the calls. Nil means a transport that connects to a private address only if it
	// is an address of the URL's host.
	Transport http.RoundTripper
	// Now is the clock. Zero means time.Now.
	Now func() time.Time
}

// Remote is a key set that is fetched regularly. Before the first successful fetch, and after
// failures for longer than Stale, no key is valid and find returns ErrUnready. A client retries
// after ErrUnready, but not after ErrBadToken.
type Remote struct {
	opts    RemoteOptions
	client  *http.Client
	refetch chan struct{} // one slot: fetch now, for an unknown key
	waiters chan struct{} // one element for each token that waits for a fetch

	mu            sync.Mutex // guards the fields below
	named         map[kidAlg]fetchedKey
	unnamed       map[string]map[[sha256.Size]byte]fetchedKey // by alg
	lastFetch     time.Time                                   // the last successful fetch
	nextMissFetch time.Time                                   // before this time an unknown key causes no fetch
	lastFailed    bool                                        // whether the last fetch failed
	missFetch     chan struct{}                               // closed at the end of a fetch for an unknown key; nil if there is none
}

// fetchedKey is a key. missingSince is when a fetched set first lacked it.
type fetchedKey struct {
	key          jwt.VerificationKey
	missingSince time.Time
}

// NewRemote checks the options. Nothing is fetched before Run.
func NewRemote(opts RemoteOptions) (*Remote, error) {
	opts.Every = cmp.Or(opts.Every, 10*time.Minute)
	opts.Grace = cmp.Or(opts.Grace, 10*time.Minute)
	opts.Stale = cmp.Or(opts.Stale, 24*time.Hour)
	u, err := url.Parse(opts.URL)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("it is not a URL") // the cause may contain a password
	case !backend.Trusted(u):
		return nil, errors.New("the scheme must be https: an attacker that changes the keys in transit could forge any token")
	case opts.Stale < opts.Every:
		return nil, fmt.Errorf("keys that are valid for %v cannot be fetched only every %v", opts.Stale, opts.Every)
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
		refetch: make(chan struct{}, 1), waiters: make(chan struct{}, maxMissWaiters),
		named: map[kidAlg]fetchedKey{}, unnamed: map[string]map[[sha256.Size]byte]fetchedKey{},
	}, nil
}

// find returns the key of alg with the id; if id is empty, all keys of alg without an id. It may
// wait for a fetch. The error is ErrUnready if the issuer may have the key but it could not be
// fetched.
func (r *Remote) find(id, alg string) ([]jwt.VerificationKey, error) {
	keys, fetch, err := r.lookup(id, alg)
	if len(keys) > 0 || err != nil || fetch == nil {
		return keys, err
	}
	select {
	case r.waiters <- struct{}{}:
		defer func() { <-r.waiters }()
	default:
		return nil, ErrUnready
	}
	timeout := time.NewTimer(missFetchTimeout)
	defer timeout.Stop()
	select {
	case <-fetch:
		keys, _, err = r.lookup(id, alg) // missFetchInterval prevents another fetch
		return keys, err
	case <-timeout.C:
		return nil, ErrUnready
	}
}

// lookup is find without waiting. If a fetch for an unknown key is in progress or begins now, the
// channel fetch is closed at its end.
func (r *Remote) lookup(id, alg string) (keys []jwt.VerificationKey, fetch <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Now()
	known := !r.staleLocked(now)
	if known {
		if keys = r.keysLocked(id, alg, now); len(keys) > 0 {
			return keys, nil, nil
		}
	}
	if r.missFetch == nil && !now.Before(r.nextMissFetch) {
		r.nextMissFetch, r.missFetch = now.Add(missFetchInterval), make(chan struct{})
		select {
		case r.refetch <- struct{}{}:
		default:
		}
	}
	if r.missFetch == nil && (!known || r.lastFailed) { // the issuer may have the key, but fetches fail
		return nil, nil, ErrUnready
	}
	return nil, r.missFetch, nil
}

func (r *Remote) keysLocked(id, alg string, now time.Time) (keys []jwt.VerificationKey) {
	valid := func(k fetchedKey) bool {
		return k.missingSince.IsZero() || now.Before(k.missingSince.Add(r.opts.Grace))
	}
	if id != "" {
		if k, ok := r.named[kidAlg{id, alg}]; ok && valid(k) {
			keys = append(keys, k.key)
		}
		return keys
	}
	for _, k := range r.unnamed[alg] {
		if valid(k) {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// staleLocked reports whether the keys are too old to be valid.
func (r *Remote) staleLocked(now time.Time) bool {
	return r.lastFetch.IsZero() || now.Sub(r.lastFetch) > r.opts.Stale
}

func (r *Remote) unready() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.lastFetch.IsZero():
		return "the keys that tokens are signed with could not be fetched yet"
	case r.staleLocked(r.opts.Now()):
		return "the keys that tokens are signed with could not be fetched for too long"
	}
	return ""
}

// Keys returns the number of keys and the time since the last successful fetch. Both are zero
// before it.
func (r *Remote) Keys() (keys int, age time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastFetch.IsZero() {
		return 0, 0
	}
	keys = len(r.named)
	for _, set := range r.unnamed {
		keys += len(set)
	}
	return keys, r.opts.Now().Sub(r.lastFetch)
}

// sameSource reports whether both fetch the same URL with the same interval and the same periods.
func (r *Remote) sameSource(other *Remote) bool {
	if r == nil || other == nil {
		return r == other
	}
	a, b := r.opts, other.opts
	return a.URL == b.URL && a.Every == b.Every && a.Grace == b.Grace && a.Stale == b.Stale
}
