package notes

import (
	"context"
	"fmt"
	"math"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// Redis reads the notes that Journals have written. It implements Store.
type Redis struct {
	client redis.UniversalClient
	pipe   *redispipe.Pipe
	prefix string
}

// NewRedis returns a Store for keys with a prefix. pipe must be over client.
func NewRedis(client redis.UniversalClient, pipe *redispipe.Pipe, prefix string) *Redis {
	return &Redis{client, pipe, prefix}
}

// Read implements Store: one command for each key, and in a Cluster one for its slots. Slots may
// move to a master for which the server has no key yet.
func (r *Redis) Read(ctx context.Context, listed string, above uint64) (n Notes, err error) {
	tags, server, ok := parse(listed)
	if !ok {
		return Notes{}, fmt.Errorf("unexpected list of keys: %q", listed)
	}
	reads := make([]*redis.ZSliceCmd, len(tags))
	cmds := make([]redis.Cmder, len(tags))
	for i, tag := range tags {
		reads[i] = redis.NewZSliceCmd(ctx, "zrangebyscore", key(r.prefix, tag, server), fmt.Sprint("(", above), "+inf", "withscores")
		cmds[i] = reads[i]
	}
	_ = r.pipe.DoAll(ctx, cmds) // each has its own error
	n.Complete = true
	for _, read := range reads {
		one, failed := parseNotes(read, above)
		if failed != nil {
			err = failed
			continue
		}
		n.Entries = append(n.Entries, one.Entries...)
		n.Complete = n.Complete && one.Complete
	}
	if cluster, ok := r.client.(*redis.ClusterClient); ok && err == nil && n.Complete {
		list := redis.NewClusterSlotsCmd(ctx, "cluster", "slots")
		err = cluster.Process(ctx, list)
		n.Complete = covered(shardsOf(list.Val()), tags)
	}
	n.Complete = n.Complete && err == nil
	return n, err
}

// parseNotes parses the reply for one key.
func parseNotes(read *redis.ZSliceCmd, above uint64) (n Notes, err error) {
	list, err := read.Result()
	if err != nil {
		return Notes{}, err
	}
	for _, z := range list {
		member, _ := z.Member.(string)
		if z.Score >= floorScore {
			n.Complete = n.Complete || member == floorMember && above >= uint64(z.Score-floorScore) && z.Score < math.MaxInt64
			continue
		}
		e, err := Decode(member)
		if err != nil {
			return Notes{}, err
		}
		n.Entries = append(n.Entries, e)
	}
	return n, nil
}
