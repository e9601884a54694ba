package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"switchboard/internal/backend"
)

const (
	fetchTimeout = 5 * time.Second
	maxKeySet    = 1 << 20 // bytes
)

// Run fetches the set until ctx ends: every interval, and when a token names an unknown key.
// fetched is called after each fetch. Run logs the first of several failures in a row, and the
// recovery.
func (r *Remote) Run(ctx context.Context, log zerolog.Logger, fetched func(ok bool)) {
	failures := 0
	for {
		skipped, err := r.Round(ctx)
		if ctx.Err() != nil {
			return
		}
		fetched(err == nil)
		switch {
		case err != nil && failures == 0:
			log.Warn().Err(err).Msg("the keys that tokens are signed with cannot be fetched; the known keys stay valid for a while")
		case err == nil && failures > 0:
			log.Info().Msg("the keys that tokens are signed with can be fetched again")
		}
		if skipped != nil {
			log.Warn().Err(skipped).Msg("a fetched key cannot be used")
		}
		if failures++; err == nil {
			failures = 0
		}
		timer := time.NewTimer(r.nextDelay(failures))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.refetch:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// nextDelay returns the delay until the next fetch: the interval, or after failures a backoff that
// begins at a second and doubles. A jitter of a tenth spreads the fetches of several instances.
func (r *Remote) nextDelay(failures int) time.Duration {
	d := r.opts.Every
	if failures > 0 {
		d = min(d, maxRetryDelay, time.Second<<min(failures-1, 10))
	}
	return d - d/10 + rand.N(d/5+1)
}

// Round fetches the set once. skipped describes keys of the set that cannot be used.
func (r *Remote) Round(ctx context.Context) (skipped, err error) {
	defer func() { r.endFetch(err) }()
	text, err := r.fetch(ctx)
	if err != nil {
		return nil, err
	}
	keys, skipped, err := parseKeySet(text)
	if err != nil {
		return skipped, err
	}
	r.replace(keys)
	return skipped, nil
}

// endFetch records the result of a fetch and wakes the waiters.
func (r *Remote) endFetch(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastFailed = err != nil
	if r.missFetch != nil {
		close(r.missFetch)
		r.missFetch = nil
	}
}

func (r *Remote) fetch(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.opts.URL, nil)
	if err != nil {
		return nil, errors.New("the URL is not valid")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", backend.WithoutURL(err)) // the query may be a secret
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch keys: the answer is %s", response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if err == nil && len(text) > maxKeySet {
		err = fmt.Errorf("more than %d bytes", maxKeySet)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	return text, nil
}

// replace stores a fetched set. A key that is no longer in the set stays valid for the grace
// period, since clients still hold tokens that it signed.
func (r *Remote) replace(keys []verifier) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Now()
	named := map[kidAlg]fetchedKey{}
	unnamed := map[string]map[[sha256.Size]byte]fetchedKey{}
	for _, v := range keys {
		if v.id != "" {
			named[kidAlg{v.id, v.alg}] = fetchedKey{key: v.key}
			continue
		}
		if unnamed[v.alg] == nil {
			unnamed[v.alg] = map[[sha256.Size]byte]fetchedKey{}
		}
		unnamed[v.alg][v.fingerprint()] = fetchedKey{key: v.key}
	}
	keepMissing(r.named, named, now, r.opts.Grace)
	for alg, known := range r.unnamed {
		if unnamed[alg] == nil {
			unnamed[alg] = map[[sha256.Size]byte]fetchedKey{}
		}
		keepMissing(known, unnamed[alg], now, r.opts.Grace)
	}
	r.named, r.unnamed, r.lastFetch = named, unnamed, now
}

// keepMissing adds to fetched the keys of known that are missing there, until their grace period
// ends.
func keepMissing[K comparable](known, fetched map[K]fetchedKey, now time.Time, grace time.Duration) {
	for name, key := range known {
		if _, present := fetched[name]; present {
			continue
		}
		if key.missingSince.IsZero() {
			key.missingSince = now
		}
		if now.Before(key.missingSince.Add(grace)) {
			fetched[name] = key
		}
	}
}
