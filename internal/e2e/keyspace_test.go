package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// bound is what keeps a key from staying for ever.
type bound int

const (
	ttl    bound = iota // Redis
	owner               // the server or, after its death, the janitor: gone when all have left
	capped              // the cap of what it holds
)

// row is what the design says of some keys.
type row struct {
	keys  *regexp.Regexp
	typ   string
	bound bound
}

// like fits keys that match a pattern wholly.
func like(pattern string) *regexp.Regexp { return regexp.MustCompile("^" + pattern + "$") }

var (
	leases      = row{like(`s_\{.+\}`), "hash", ttl}
	clientLists = row{like(`mq_c_\{.+\}`), "list", ttl}
)

// table is the one of the design, and the idempotency keys. The first row that fits counts.
var table = []row{
	{like(`s_list`), "set", owner},
	{like(`s_dead_\{.+\}`), "string", ttl},
	{like(`s_ch_\{.+\}`), "set", owner},
	{like(`s_c_\{.+\}`), "set", owner},
	leases,
	{like(`u_\{.+\}`), "hash", ttl},
	{like(`c_\{.+\}`), "hash", ttl},
	{like(`ch_list`), "set", owner},
	{like(`ch_p_\{.+\}:.+`), "hash", owner},
	{like(`ch_\{.+\}`), "set", owner},
	clientLists,
	{like(`mq_ch_\{.+\}`), "zset", ttl},
	{like(`mq_m_\{.+\}`), "hash", ttl},
	{like(`mq_k_\{.+\}:.+`), "string", ttl},
	{like(`mq_kc_\{.+\}:.+`), "string", ttl},
	{like(`qq_\{\d+\}`), "list", capped},
}

// rowOf is the row of a key, if there is one.
func rowOf(key string) (row, bool) {
	for _, r := range table {
		if r.keys.MatchString(key) {
			return r, true
		}
	}
	return row{}, false
}

// walk gives all keys, by row; those of no row are an error.
func walk(ctx context.Context, rdb *redis.Client) (map[row][]string, error) {
	found := map[row][]string{}
	var unknown []string
	keys := rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		if r, known := rowOf(keys.Val()); known {
			found[r] = append(found[r], keys.Val())
		} else {
			unknown = append(unknown, keys.Val())
		}
	}
	if len(unknown) > 0 {
		return found, fmt.Errorf("keys that the table does not know: %.300q", unknown)
	}
	return found, keys.Err()
}

// checkKeys demands of every key the type and the bound that the table says. It returns
// how many there are in each row.
func checkKeys(ctx context.Context, rdb *redis.Client) (count map[string]int, err error) {
	found, err := walk(ctx, rdb)
	count = map[string]int{}
	for r, keys := range found {
		count[r.keys.String()] = len(keys)
		err = errors.Join(err, r.check(ctx, rdb, keys))
	}
	return count, err
}

// check gives the first objection to some keys of the row.
func (r row) check(ctx context.Context, rdb *redis.Client, keys []string) error {
	pipe := rdb.Pipeline()
	for _, key := range keys {
		pipe.Type(ctx, key)
		pipe.PTTL(ctx, key)
	}
	answers, err := pipe.Exec(ctx)
	if err != nil {
		return err
	}
	for i, key := range keys {
		typ, left := answers[2*i].(*redis.StatusCmd).Val(), answers[2*i+1].(*redis.DurationCmd).Val()
		switch {
		case typ == "none": // it has gone since the walk saw it
		case typ != r.typ:
			return fmt.Errorf("%s is a %s, not a %s", key, typ, r.typ)
		case r.bound == ttl && left < 0:
			return fmt.Errorf("%s has no TTL", key)
		}
	}
	return nil
}

// emptied says which rows have keys although none should.
func emptied(ctx context.Context, rdb *redis.Client, none func(row) bool) error {
	found, err := walk(ctx, rdb)
	for r, keys := range found {
		if none(r) {
			err = errors.Join(err, fmt.Errorf("there are %d keys %s, like %s", len(keys), r.keys, keys[0]))
		}
	}
	return err
}

// ofServers are the rows that have no key when no server is left.
func ofServers(r row) bool { return r.bound == owner || r == leases }

// ofWaiting is the row that has no key when every client has acknowledged all.
func ofWaiting(r row) bool { return r == clientLists }

// nobodyOnline checks what is remembered of users and clients.
func nobodyOnline(ctx context.Context, t *testing.T, rdb *redis.Client, cast []member) {
	t.Helper()
	for _, m := range cast {
		if server := rdb.HGet(ctx, "c_{"+m.Client+"}", "server").Val(); server != "" {
			t.Errorf("client %s is still bound to %s", m.Client, server)
		}
		if at, err := rdb.HGet(ctx, "u_{"+m.User+"}", m.Client).Result(); err != nil || !strings.HasPrefix(at, ":") {
			t.Errorf("user %s has client %s at %q (%v), want it offline", m.User, m.Client, at, err)
		}
	}
}
