// Package keytable holds the table of the keys in Redis. Tests and measurements check with it that
// every key is known, has the right type, and does not stay forever.
package keytable

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Bound is how a key is eventually removed.
type Bound int

const (
	TTL      Bound = iota // it expires
	Owner                 // its server removes it, or the janitor after the server's death
	State                 // it ends with the state of its channel: by a script after state_keep, or the janitor's sweep
	Position              // it expires, unless its channel has a state
	Document              // it ends with what it describes, which your backend removes
)

// Row describes the keys that match a pattern.
type Row struct {
	Keys  *regexp.Regexp
	Type  string
	Bound Bound
}

// whole compiles a pattern that matches whole keys.
func whole(pattern string) *regexp.Regexp { return regexp.MustCompile("^" + pattern + "$") }

var (
	leases      = Row{whole(`s_\{.+\}`), "hash", TTL}
	clientLists = Row{whole(`mq_c_\{.+\}`), "list", TTL}
)

// Table describes all keys. The first row that matches a key applies.
var Table = []Row{
	{whole(`s_list`), "set", Owner},
	{whole(`s_ends_\{servers\}`), "zset", Owner},
	{whole(`s_changes_\{servers\}`), "zset", Owner},
	{whole(`s_about_\{servers\}`), "hash", Owner},
	{whole(`s_dead_\{.+\}`), "string", TTL},
	{whole(`s_died`), "zset", TTL},
	{whole(`j_list`), "hash", TTL},
	{whole(`j_r_\{rounds\}:.+`), "string", TTL},
	{whole(`s_ch_\{.+\}`), "set", Owner},
	{whole(`s_c_\{.+\}`), "set", Owner},
	leases,
	{whole(`u_revoked`), "zset", TTL},
	{whole(`u_w_\{.+\}`), "zset", TTL},
	{whole(`u_r_\{.+\}(:.+)?`), "string", TTL},
	{whole(`u_s_\{.+\}(:.+)?`), "hash", TTL},
	{whole(`c_s_\{.+\}`), "hash", TTL},
	{whole(`u_\{.+\}`), "hash", TTL},
	{whole(`sb_\{.+\}`), "hash", TTL},
	{whole(`sb_a_\{.+\}`), "hash", TTL},
	{whole(`c_\{.+\}`), "hash", TTL},
	{whole(`ch_list`), "set", Owner},
	{whole(`ch_list_\{\d+\}`), "set", Owner}, // in a Cluster
	{whole(`ch_p_\{.+\}:.+`), "hash", Owner},
	{whole(`ch_pw_\{.+\}`), "set", Owner},
	{whole(`ch_\{.+\}`), "set", Owner},
	clientLists,
	{whole(`mq_ch_\{.+\}`), "zset", TTL},
	{whole(`mq_m_\{.+\}`), "hash", Position},
	{whole(`st_\{.+\}`), "hash", State},
	{whole(`st_n_\{.+\}`), "zset", State},
	{whole(`st_x_\{.+\}`), "zset", State},
	{whole(`st_o_\{.+\}`), "hash", State},
	{whole(`st_p_\{.+\}`), "zset", State},
	{whole(`mq_k_\{.+\}:.+`), "string", TTL},
	{whole(`mq_kc_\{.+\}:.+`), "string", TTL},
	{whole(`mq_f_\{.+\}`), "zset", TTL},
	{whole(`qq_\{\d+\}`), "list", TTL},
	{whole(`qq_o_\{\d+\}`), "list", TTL},
	{whole(`qq_s_\{\d+\}`), "hash", TTL},
	{whole(`lb_\{board:.+\}`), "zset", Document}, // of a board without seasons
	{whole(`lb_p_\{board:.+\}`), "hash", Document},
	{whole(`lb_\{board:.+\}:.+`), "zset", TTL}, // of a season
	{whole(`lb_p_\{board:.+\}:.+`), "hash", TTL},
	{whole(`lb_o_\{board:.+\}:.+`), "string", TTL},
	{whole(`bu_\{.+\}:.+`), "zset", TTL},
	{whole(`ix_\{.+\}`), "hash", Document},
	{whole(`ix_l_\{.+\}:.+`), "zset", Document},
	{whole(`ix_d_\{.+\}`), "zset", Document},
	{whole(`ix_t_\{.+\}`), "zset", Document},
	{whole(`ix_p_\{.+\}`), "hash", TTL},
	{whole(`ix_pe_\{.+\}`), "zset", TTL},
	{whole(`ix_pn_\{.+\}`), "hash", TTL},
	{whole(`ix_pm_\{.+\}:.+`), "zset", TTL},
	{whole(`ix_r_\{rounds\}:.+`), "string", TTL},
	{whole(`ev_due_\{ev\d+\}`), "zset", TTL},
	{whole(`ev_told_\{ev\d+\}`), "hash", TTL},
	{whole(`ev_fields_\{ev\d+\}`), "hash", TTL},
	{whole(`ev_watch_\{ev\d+\}`), "hash", TTL},
	{whole(`ev_out_\{ev\d+\}`), "list", TTL},
	{whole(`ev_dead_\{ev\d+\}`), "list", TTL},
	{whole(`ev_m_\{ev\d+\}`), "hash", TTL},
}

// OwnedByServers selects the rows that must have no keys if no server is left.
func OwnedByServers(r Row) bool { return r.Bound == Owner || r == leases }

// ClientQueues selects the row that must have no keys if all clients have acknowledged everything.
func ClientQueues(r Row) bool { return r == clientLists }

// rowOf returns the row of a key.
func rowOf(key string) (Row, bool) {
	for _, r := range Table {
		if r.Keys.MatchString(key) {
			return r, true
		}
	}
	return Row{}, false
}

// Walk returns all keys by row. The error names unknown keys.
func Walk(ctx context.Context, rdb redis.UniversalClient) (map[Row][]string, error) {
	found := map[Row][]string{}
	var unknown []string
	var mu sync.Mutex // guards found and unknown: the masters of a Cluster are walked concurrently
	err := eachMaster(ctx, rdb, func(ctx context.Context, node *redis.Client) error {
		keys := node.Scan(ctx, 0, "*", 1000).Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			if r, known := rowOf(keys.Val()); known {
				found[r] = append(found[r], keys.Val())
			} else {
				unknown = append(unknown, keys.Val())
			}
			mu.Unlock()
		}
		return keys.Err()
	})
	if len(unknown) > 0 {
		err = errors.Join(err, fmt.Errorf("unknown keys: %.300q", unknown))
	}
	return found, err
}

func eachMaster(ctx context.Context, rdb redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, do)
	case *redis.Client:
		return do(ctx, c)
	}
	return fmt.Errorf("a %T cannot be walked", rdb)
}

// Check checks the type and the TTL of every key. It returns the number of keys by the pattern of
// their row.
func Check(ctx context.Context, rdb redis.UniversalClient) (count map[string]int, err error) {
	found, err := Walk(ctx, rdb)
	count = map[string]int{}
	for r, keys := range found {
		count[r.Keys.String()] = len(keys)
		err = errors.Join(err, r.check(ctx, rdb, keys))
	}
	return count, err
}

// check returns the first error of keys in the row.
func (r Row) check(ctx context.Context, rdb redis.UniversalClient, keys []string) error {
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
		case typ == "none": // removed since Walk
		case typ != r.Type:
			return fmt.Errorf("%s is a %s, not a %s", key, typ, r.Type)
		case left >= 0:
			if r.Bound == State {
				return fmt.Errorf("%s has a TTL, which would end the state without an entry", key)
			}
		case r.Bound == TTL, r.Bound == Position && !rdb.HExists(ctx, key, "st_keep").Val():
			return fmt.Errorf("%s has no TTL", key)
		}
	}
	return nil
}

// CheckEmpty returns an error for each selected row that has keys.
func CheckEmpty(ctx context.Context, rdb redis.UniversalClient, selected func(Row) bool) error {
	found, err := Walk(ctx, rdb)
	for r, keys := range found {
		if selected(r) {
			err = errors.Join(err, fmt.Errorf("%d keys %s are left, like %s", len(keys), r.Keys, keys[0]))
		}
	}
	return err
}
