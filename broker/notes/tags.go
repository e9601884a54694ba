package notes

import (
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/slots"
)

// maxTag bounds the search for a tag. With a thousand masters of equal size, the chance that one of
// them has none of these tags is below one in a million.
const maxTag = 1 << 15

// key returns the key of the notes of a server in the slot of a tag.
func key(prefix string, tag int, server string) string {
	return prefix + "nt_{" + strconv.Itoa(tag) + "}:" + server
}

// describe returns the text of a lease that lists the keys of a server's notes.
func describe(tags []int, server string) string {
	if len(tags) == 0 {
		return ""
	}
	texts := make([]string, len(tags))
	for i, tag := range tags {
		texts[i] = strconv.Itoa(tag)
	}
	return strings.Join(texts, ",") + ":" + server
}

// parse parses what describe has made.
func parse(text string) (tags []int, server string, ok bool) {
	list, server, ok := strings.Cut(text, ":")
	if !ok {
		return nil, "", false
	}
	for tag := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(tag)
		if err != nil {
			return nil, "", false
		}
		tags = append(tags, n)
	}
	return tags, server, true
}

// shard is the slots of a master, as CLUSTER SLOTS returns them.
type shard struct {
	master string // its address
	slots  slots.Set
}

// shardsOf returns the masters of a Cluster with their slots.
func shardsOf(list []redis.ClusterSlot) (shards []shard) {
	for _, s := range list {
		if len(s.Nodes) == 0 {
			continue
		}
		master := s.Nodes[0].Addr
		at := slices.IndexFunc(shards, func(one shard) bool { return one.master == master })
		if at < 0 {
			at = len(shards)
			shards = append(shards, shard{master: master})
		}
		shards[at].slots.Add(s.Start, s.End)
	}
	return shards
}

// covered reports whether each master has the slot of at least one of the tags.
func covered(shards []shard, tags []int) bool {
	return !slices.ContainsFunc(shards, func(s shard) bool {
		return !slices.ContainsFunc(tags, func(tag int) bool { return s.slots.HasName(strconv.Itoa(tag)) })
	})
}
