package registry

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

const (
	// maxSetsAtOnce is the most sets that are read in one round trip.
	maxSetsAtOnce = 16
	// maxListScans is the most SSCANs of ch_list for one page of a Cluster.
	maxListScans = 16
	// mostListScanned is about how many names an SSCAN of ch_list looks at if most of them are in the
	// sets.
	mostListScanned = 1000
)

// Channels returns about limit channels of the list whose names begin with prefix, from cursor on.
// An empty cursor begins the list. next is empty after the last page, and only then: a page may
// have no names. A name may be returned twice; a name that is in the list all the time is returned
// at least once. Channels returns ErrBadCursor if the cursor is malformed.
//
// The cursor is that of SSCAN. In a Cluster it is that of ch_list, or the number of a set, a colon,
// and the cursor in that set. If a set of a Cluster cannot be read, next is the cursor of the set
// after it.
func (r *Redis) Channels(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error) {
	if r.cluster {
		names, next, err = r.clusterPage(ctx, prefix, cursor, max(limit, 1))
	} else {
		names, next, err = r.scanSet(ctx, r.keys.channelList(), prefix, cursor, limit)
	}
	if err != nil {
		return nil, next, fmt.Errorf("channels from %q: %w", prefix, err)
	}
	return names, next, nil
}

// clusterPage returns a page of the list of channels in a Cluster. The list is read first, and then
// the sets: MoveChannelList adds a name to its set before it removes it from the list, so a name
// that it moves meanwhile is not missed.
func (r *Redis) clusterPage(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error) {
	at, err := parseListCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	if at.set == inList {
		names, at, err = r.listPage(ctx, prefix, at, limit)
	}
	if err == nil && at.set != inList && len(names) < limit {
		names, at, err = r.setsPage(ctx, prefix, at, limit, names)
	}
	return names, at.String(), err
}

// listPage returns a page of ch_list, without the names that are in the sets.
func (r *Redis) listPage(ctx context.Context, prefix string, at listCursor, limit int) (names []string, next listCursor, err error) {
	for scans, count := 0, limit; len(names) < limit && scans < maxListScans; scans++ {
		cmd := scanCommand(ctx, r.keys.channelList(), prefix, at.position, count)
		if err := r.pipe.Do(ctx, cmd); err != nil {
			return nil, listCursor{set: 0}, err
		}
		var found []string
		found, at.position = cmd.Val()
		names = append(names, r.onlyInList(ctx, found)...)
		if at.position == 0 {
			return names, listCursor{set: 0}, nil
		}
		count = min(4*count, max(limit, mostListScanned))
	}
	return names, at, nil
}

// onlyInList returns the names that are not in the sets. If a set cannot be read, its names count
// as missing there.
func (r *Redis) onlyInList(ctx context.Context, names []string) (only []string) {
	if len(names) == 0 {
		return nil
	}
	parts := r.partsOf(names, false)
	cmds, replies := make([]redis.Cmder, len(parts)), make([]*redis.BoolSliceCmd, len(parts))
	for i, p := range parts {
		replies[i] = redis.NewBoolSliceCmd(ctx, append([]any{"smismember", p.key}, anys(p.channels)...)...)
		cmds[i] = replies[i]
	}
	_ = r.pipe.DoAll(ctx, cmds) // each has its own error
	for i, p := range parts {
		has := replies[i].Val()
		for k, name := range p.channels {
			if replies[i].Err() != nil || !has[k] {
				only = append(only, name)
			}
		}
	}
	return only
}

// setsPage adds names from the sets to a page. Several small sets are read in one round trip, as
// many as the page needs if the next ones have as many names as those before. After an error, next
// is the set after the one that could not be read; but if the page has names, the next call returns
// the error.
func (r *Redis) setsPage(
	ctx context.Context, prefix string, at listCursor, limit int, names []string,
) (page []string, next listCursor, err error) {
	from := len(names)
	for sets, done := 1, 0; at.set < channelSets && len(names) < limit; sets = nextSets(sets, done, len(names)-from, limit-len(names)) {
		cmds := make([]redis.Cmder, min(sets, channelSets-at.set))
		for i := range cmds {
			cmds[i] = scanCommand(ctx, r.keys.channelSet(at.set+i), prefix, 0, limit-len(names))
		}
		cmds[0] = scanCommand(ctx, r.keys.channelSet(at.set), prefix, at.position, limit-len(names))
		_ = r.pipe.DoAll(ctx, cmds) // each has its own error
		for _, cmd := range cmds {
			found, position, err := cmd.(*redis.ScanCmd).Result()
			if err != nil && len(names) > 0 {
				return names, at, nil
			}
			if err != nil {
				return nil, listCursor{set: at.set + 1}, err
			}
			names = append(names, found...)
			if position != 0 {
				return names, listCursor{at.set, position}, nil
			}
			at, done = listCursor{set: at.set + 1}, done+1
			if len(names) >= limit {
				break
			}
		}
	}
	return names, at, nil
}

// nextSets returns how many sets to read in the next round trip. done sets had found names, and
// missing names are needed.
func nextSets(sets, done, found, missing int) int {
	needed := maxSetsAtOnce
	if found > 0 {
		needed = (missing*done + found - 1) / found
	}
	return min(2*sets, maxSetsAtOnce, needed)
}

// inList is the set of a listCursor in ch_list.
const inList = -1

// listCursor is a position in the list of channels of a Cluster.
type listCursor struct {
	set      int    // inList first, channelSets at the end
	position uint64 // of SSCAN
}

func parseListCursor(text string) (c listCursor, err error) {
	if text == "" {
		return listCursor{set: inList}, nil
	}
	c.set = inList
	if set, position, inSet := strings.Cut(text, ":"); inSet {
		if c.set, err = strconv.Atoi(set); err != nil || c.set < 0 || c.set >= channelSets {
			return c, ErrBadCursor
		}
		text = position
	}
	if c.position, err = strconv.ParseUint(text, 10, 64); err != nil {
		return c, ErrBadCursor
	}
	return c, nil
}

// String returns the text of the cursor, which is empty at the end of the list.
func (c listCursor) String() string {
	switch c.set {
	case inList:
		return strconv.FormatUint(c.position, 10)
	case channelSets:
		return ""
	}
	return fmt.Sprintf("%d:%d", c.set, c.position)
}

// scanSet returns a page of the names in a set that begin with prefix.
func (r *Redis) scanSet(ctx context.Context, key, prefix, cursor string, limit int) ([]string, string, error) {
	var position uint64
	if cursor != "" {
		var err error
		if position, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", ErrBadCursor
		}
	}
	cmd := scanCommand(ctx, key, prefix, position, limit)
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, "", err
	}
	names, position := cmd.Val()
	if position == 0 {
		return names, "", nil
	}
	return names, strconv.FormatUint(position, 10), nil
}

func scanCommand(ctx context.Context, key, prefix string, position uint64, count int) *redis.ScanCmd {
	return redis.NewScanCmd(ctx, nil, "sscan", key, position,
		"match", redispipe.EscapeGlob(prefix)+"*", "count", max(count, 1))
}
