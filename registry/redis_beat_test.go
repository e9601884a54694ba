package registry

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// commandsOf returns the number of commands since the start of Redis, with those in scripts and
// without INFO.
func commandsOf(t *testing.T, client redis.UniversalClient) (sum int) {
	t.Helper()
	text, err := client.Info(t.Context(), "commandstats").Result()
	ok(t, err)
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, fields, _ := strings.Cut(lines.Text(), ":calls=")
		if calls, _, found := strings.Cut(fields, ","); found && name != "cmdstat_info" {
			n, err := strconv.Atoi(calls)
			ok(t, err)
			sum += n
		}
	}
	return sum
}

// TestBeatsCostTheSameWithMoreServers counts the commands of beats without changes.
func TestBeatsCostTheSameWithMoreServers(t *testing.T) {
	client := redistest.Start(t).Client(t)
	r := newRedis(client)
	a := &watcher{T: t, s: store{contract: r}, self: Server{ID: "a"}}
	a.sees("all", "+a")
	for _, servers := range []int{1, 50} {
		for i := range servers {
			ok(t, r.Join(t.Context(), Server{ID: fmt.Sprint("server-", i)}))
		}
		c, err := r.Renew(t.Context(), a.self, a.number)
		ok(t, err)
		a.number = c.Number
		fewest := int64(math.MaxInt64) // a new connection of the client adds commands
		for range 3 {
			before := commandsOf(t, client)
			for range 10 {
				a.sees()
			}
			fewest = min(fewest, int64(commandsOf(t, client)-before))
		}
		if fewest != 90 {
			t.Errorf("10 beats beside %d servers are %d commands, want 90", servers, fewest)
		}
	}
}

// TestClockGoesBack checks that a dead server does not stay live for as long as the clock of a
// promoted replica is slow.
func TestClockGoesBack(t *testing.T) {
	ctx, s := t.Context(), redisStore(t, single.Client(t))
	r := s.contract.(*Redis)
	ok(t, s.Join(ctx, Server{ID: "b"}))
	a := &watcher{T: t, s: s, self: Server{ID: "a"}}
	a.sees("all", "+a", "+b")
	s.pause(t, -time.Hour)
	a.sees()
	end, err := single.Client(t).ZScore(ctx, r.keys.listEnds(), "b").Result()
	if left := time.Until(time.UnixMicro(int64(end))); err != nil || left > r.opts.Lease || left < r.opts.Lease/2 {
		t.Errorf("the lease of b ends in %v, %v", left, err)
	}
}

// TestNumbersGoBack checks that a server whose number is from before a failover gets all servers,
// and gets into the list again.
func TestNumbersGoBack(t *testing.T) {
	ctx, client := t.Context(), single.Client(t)
	r := newRedis(client)
	a := &watcher{T: t, s: store{contract: r}, self: Server{ID: "a"}}
	a.sees("all", "+a")
	ok(t, r.Join(ctx, Server{ID: "other"}))
	a.sees("+other")
	ok(t, client.Del(ctx, r.listKeys()...).Err())
	a.sees("all", "+a")
	ok(t, r.Join(ctx, Server{ID: "other"}))
	a.sees("+other")
	ok(t, client.ZRem(ctx, r.keys.listChanges(), "other").Err()) // the number is higher than all changes
	ok(t, client.ZAddXX(ctx, r.keys.listEnds(), redis.Z{Score: 1, Member: " change"}).Err())
	a.sees("all", "+a", "+other")
}

// TestManyChanges checks a call that finds more changes than Lua can unpack.
func TestManyChanges(t *testing.T) {
	const n = 9000
	ctx, client := t.Context(), single.Client(t)
	r := newRedis(client)
	a := &watcher{T: t, s: store{contract: r}, self: Server{ID: "a"}}
	a.sees("all", "+a")
	pipeline, change := client.Pipeline(), float64(time.Now().UnixMicro())
	for i := range n {
		id := fmt.Sprint("server-", i)
		pipeline.HSet(ctx, r.keys.listAbout(), id, `{"host":"h:1"}`)
		pipeline.ZAdd(ctx, r.keys.listChanges(), redis.Z{Score: change, Member: id})
	}
	pipeline.ZAdd(ctx, r.keys.listEnds(), redis.Z{Score: change, Member: " change"})
	_, err := pipeline.Exec(ctx)
	ok(t, err)
	c, err := r.Renew(ctx, a.self, a.number)
	if err != nil || !c.All || len(c.Changed) != n+1 || c.Changed[1].Host != "h:1" {
		t.Errorf("%d servers, all %t, %v", len(c.Changed), c.All, err)
	}
}

// TestListWithoutServersHasNoKeys checks that no key of the list stays after the last server.
func TestListWithoutServersHasNoKeys(t *testing.T) {
	ctx, client := t.Context(), single.Client(t)
	r := newRedis(client)
	for _, id := range []string{"a", "b"} {
		ok(t, r.Join(ctx, Server{ID: id}))
	}
	ok(t, r.Leave(ctx, "a"))
	want(t, int64(3))(client.Exists(ctx, r.listKeys()...).Result())
	ok(t, client.Del(ctx, r.keys.lease("b")).Err()) // it was killed
	want(t, true)(r.DeclareDead(ctx, "b"))
	want(t, int64(0))(client.Exists(ctx, r.listKeys()...).Result())
}
