package redispipe

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// scanCount is how many keys one SCAN looks at: about half a millisecond of Redis.
const scanCount = 1000

var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// EscapeGlob returns the glob pattern that matches only text.
func EscapeGlob(text string) string { return globEscaper.Replace(text) }

// Keys yields the keys that match a glob pattern, of all masters of a Cluster. Each SCAN is a round
// trip of its own. A key may come twice, and a key that is created or removed meanwhile may be
// missing. After an error the sequence ends.
func (p *Pipe) Keys(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		masters, err := p.masters(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, master := range masters {
			if !p.scan(ctx, master, pattern, yield) {
				return
			}
		}
	}
}

// scan yields the matching keys of one master. It returns false if the sequence has ended.
func (p *Pipe) scan(ctx context.Context, master *redis.Client, pattern string, yield func(string, error) bool) bool {
	for cursor := uint64(0); ; {
		once, cancel := context.WithTimeout(ctx, p.opts.Timeout)
		keys, next, err := master.Scan(once, cursor, pattern, scanCount).Result()
		cancel()
		if err != nil {
			yield("", err)
			return false
		}
		for _, key := range keys {
			if !yield(key, nil) {
				return false
			}
		}
		if cursor = next; cursor == 0 {
			return true
		}
	}
}

func (p *Pipe) masters(ctx context.Context) (masters []*redis.Client, err error) {
	switch c := p.client.(type) {
	case *redis.Client:
		return []*redis.Client{c}, nil
	case *redis.ClusterClient:
		ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
		defer cancel()
		var mu sync.Mutex // guards masters
		err = c.ForEachMaster(ctx, func(_ context.Context, master *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			masters = append(masters, master)
			return nil
		})
		return masters, err
	}
	return nil, fmt.Errorf("redispipe: the keys of a %T cannot be listed", p.client)
}
