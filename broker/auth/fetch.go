package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/rs/zerolog"
)

const (
	fetchTimeout = 5 * time.Second
	maxKeySet    = 1 << 20 // bytes
)

// Run fetches the set until ctx ends: every interval, and when a token names a key that is missed. fetched is told
// how each fetch went. What goes wrong is in the log once, until it goes well again.
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
			log.Warn().Err(err).Msg("the keys that tokens are signed with cannot be fetched; those that are known stay for a while")
		case err == nil && failures > 0:
			log.Info().Msg("the keys that tokens are signed with can be fetched again")
		}
		if skipped != nil {
			log.Warn().Err(skipped).Msg("a fetched key cannot be used")
		}
		if failures++; err == nil {
			failures = 0
		}
		timer := time.NewTimer(r.pause(failures))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.asked:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// pause is the interval, with a tenth to and fro so that instances do not ask all at once; after failures it
// begins at a second and doubles.
func (r *Remote) pause(failures int) time.Duration {
	d := r.opts.Every
	if failures > 0 {
		d = min(d, longestPause, time.Second<<min(failures-1, 10))
	}
	return d - d/10 + rand.N(d/5+1)
}

// Round is one fetch. skipped tells of keys in the set that cannot be used.
func (r *Remote) Round(ctx context.Context) (skipped, err error) {
	defer func() { r.landed(err) }()
	text, err := r.fetch(ctx)
	if err != nil {
		return nil, err
	}
	keys, skipped, err := parseKeySet(text)
	if err != nil {
		return skipped, err
	}
	r.take(keys)
	return skipped, nil
}

// landed wakes whoever waits for the fetch.
func (r *Remote) landed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = err != nil
	if r.flight != nil {
		close(r.flight)
		r.flight = nil
	}
}

func (r *Remote) fetch(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.opts.URL, nil)
	if err != nil {
		return nil, errors.New("the URL is none")
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := r.client.Do(request)
	if err != nil {
		// net/http's error repeats the URL, whose query may be a secret.
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return nil, fmt.Errorf("fetch keys: %w", err)
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

// take puts a fetched set in the place of the one before. A key that is not in it any more stays for the grace:
// tokens that it has signed a moment ago are on their way.
func (r *Remote) take(keys []verifier) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.opts.Now()
	named := map[keyID]held{}
	unnamed := map[string]map[[sha256.Size]byte]held{}
	for _, v := range keys {
		if v.id != "" {
			named[keyID{v.id, v.alg}] = held{key: v.key}
			continue
		}
		if unnamed[v.alg] == nil {
			unnamed[v.alg] = map[[sha256.Size]byte]held{}
		}
		unnamed[v.alg][v.print()] = held{key: v.key}
	}
	carry(r.named, named, now, r.opts.Grace)
	for alg, before := range r.unnamed {
		if unnamed[alg] == nil {
			unnamed[alg] = map[[sha256.Size]byte]held{}
		}
		carry(before, unnamed[alg], now, r.opts.Grace)
	}
	r.named, r.unnamed, r.fetched = named, unnamed, now
}

// carry takes what is missing over from before, as long as its grace lasts.
func carry[K comparable](before, after map[K]held, now time.Time, grace time.Duration) {
	for name, h := range maps.All(before) {
		if _, there := after[name]; there {
			continue
		}
		if h.gone.IsZero() {
			h.gone = now
		}
		if now.Before(h.gone.Add(grace)) {
			after[name] = h
		}
	}
}
