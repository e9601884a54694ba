package registry

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// former is a server or a janitor of the release before ch_list_{N}: it knows only ch_list. Do not
// change its commands: servers of that release run beside new ones during an upgrade.
type former struct {
	*testing.T
	client redis.UniversalClient
	prefix string
	id     string
}

// join lists the server. can is empty, or "changes" for the last build before ch_list_{N}.
func (f former) join(can string) {
	f.Helper()
	fields := []any{"host", "h:1", "version", "0.9"}
	if can != "" {
		fields = append(fields, "can", can)
	}
	ok(f.T, f.client.HSet(f.Context(), f.prefix+"s_{"+f.id+"}", fields...).Err())
	ok(f.T, f.client.SAdd(f.Context(), f.prefix+"s_list", f.id).Err())
}

// leave removes the server, which must have no channels.
func (f former) leave() {
	f.Helper()
	ok(f.T, f.client.Del(f.Context(), f.prefix+"s_ch_{"+f.id+"}").Err())
	ok(f.T, f.client.Del(f.Context(), f.prefix+"s_{"+f.id+"}").Err())
	ok(f.T, f.client.SRem(f.Context(), f.prefix+"s_list", f.id).Err())
}

func (f former) bind(channels ...string) {
	f.Helper()
	for _, channel := range channels {
		ok(f.T, f.client.SAdd(f.Context(), f.prefix+"s_ch_{"+f.id+"}", channel).Err())
		ok(f.T, f.client.SAdd(f.Context(), f.prefix+"ch_{"+channel+"}", f.id).Err())
		ok(f.T, f.client.SAdd(f.Context(), f.prefix+"ch_list", channel).Err())
	}
}

func (f former) unbind(channels ...string) {
	f.Helper()
	for _, channel := range channels {
		ok(f.T, f.client.SRem(f.Context(), f.prefix+"ch_{"+channel+"}", f.id).Err())
		n, err := f.client.SCard(f.Context(), f.prefix+"ch_{"+channel+"}").Result()
		ok(f.T, err)
		if n == 0 {
			f.delist(channel)
		}
		ok(f.T, f.client.SRem(f.Context(), f.prefix+"s_ch_{"+f.id+"}", channel).Err())
	}
}

// prune removes the channel from the list if it has no servers, as the janitor does.
func (f former) prune(channel string) {
	f.Helper()
	n, err := f.client.Exists(f.Context(), f.prefix+"ch_{"+channel+"}").Result()
	ok(f.T, err)
	if n == 0 {
		f.delist(channel)
	}
}

func (f former) delist(channel string) {
	f.Helper()
	ok(f.T, f.client.SRem(f.Context(), f.prefix+"ch_list", channel).Err())
	n, err := f.client.Exists(f.Context(), f.prefix+"ch_{"+channel+"}").Result()
	ok(f.T, err)
	if n == 1 {
		ok(f.T, f.client.SAdd(f.Context(), f.prefix+"ch_list", channel).Err())
	}
}

// channels returns the list as the janitor and GET /v1/channels read it.
func (f former) channels() (all []string) {
	f.Helper()
	names := f.client.SScan(f.Context(), f.prefix+"ch_list", 0, "*", 500).Iterator()
	for names.Next(f.Context()) {
		all = append(all, names.Val())
	}
	ok(f.T, names.Err())
	slices.Sort(all)
	return slices.Compact(all)
}
