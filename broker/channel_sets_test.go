package broker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/slots"
)

// listingRegistry records how a broker lists its channels.
type listingRegistry struct {
	Registry
	rdb        *redis.ClusterClient
	prefix     string
	failedOver chan slots.Set

	mu    sync.Mutex // guards the fields below
	calls listingCalls
	keep  bool // ch_list has the channels, too
}

// listingCalls are the channels that were bound, that were listed again in all lists, and that were
// listed again only in the broker's own list. They are sorted.
type listingCalls struct{ bound, listed, held []string }

func (r *listingRegistry) BindChannels(ctx context.Context, server string, channels []string) []error {
	r.mu.Lock()
	r.calls.bound = append(r.calls.bound, channels...)
	r.mu.Unlock()
	return r.Registry.BindChannels(ctx, server, channels)
}

func (r *listingRegistry) RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error) {
	r.mu.Lock()
	r.calls.bound = append(r.calls.bound, channels...)
	r.mu.Unlock()
	return r.Registry.RebindChannels(ctx, server, channels, list)
}

func (r *listingRegistry) HoldChannels(ctx context.Context, server string, channels []string) error {
	err := r.Registry.HoldChannels(ctx, server, channels)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.held = append(r.calls.held, channels...)
	return err
}

func (r *listingRegistry) ListChannels(ctx context.Context, server string, channels []string) error {
	err := r.Registry.ListChannels(ctx, server, channels)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.listed = append(r.calls.listed, channels...)
	return err
}

func (r *listingRegistry) KeepChannelList(keep bool) {
	r.Registry.KeepChannelList(keep)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = keep
}

// keeps waits until the broker writes ch_list, or no longer does.
func (r *listingRegistry) keeps(t *testing.T, want bool) {
	t.Helper()
	await.True(t, fmt.Sprintf("ch_list is kept: %t", want), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.keep == want
	})
}

// take returns the recorded calls, and forgets them.
func (r *listingRegistry) take() listingCalls {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = listingCalls{}
	for _, names := range [][]string{calls.bound, calls.listed, calls.held} {
		slices.Sort(names)
	}
	return calls
}

// startListing starts a Cluster, and a broker whose registry records how it lists its channels.
func startListing(t *testing.T) (instance, *listingRegistry) {
	t.Helper()
	rdb := redistest.StartCluster(t, 3).Client(t)
	s, prefix := redisStore(t, rdb, testBeat)
	reg := &listingRegistry{Registry: s.registry, rdb: rdb, prefix: prefix, failedOver: make(chan slots.Set), keep: true}
	s.registry = reg
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat, o.Store.Changed = testBeat, reg.failedOver })
	i.awaitReady(t, http.StatusOK)
	reg.keeps(t, false)
	return i, reg
}

// failOver has the broker notice that the master of a slot failed over.
func (r *listingRegistry) failOver(slot int) {
	of := slots.Set{}
	of.Add(slot, slot)
	r.failedOver <- of
}

// setKey returns the key that lists a channel in a Cluster, as docs/keys.md describes it.
func setKey(prefix, channel string) string {
	return fmt.Sprintf("%sch_list_{%d}", prefix, slots.Of(channel)%64)
}

// keysLike returns the keys of a Cluster that match a pattern.
func keysLike(t *testing.T, c *redis.ClusterClient, pattern string) (keys []string) {
	t.Helper()
	var mu sync.Mutex // guards keys
	err := c.ForEachMaster(t.Context(), func(ctx context.Context, master *redis.Client) error {
		found, err := master.Keys(ctx, pattern).Result()
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, found...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestLostChannelSet checks that a broker restores what a failover lost of the list of channels,
// and touches no other channel. GET /v1/channels then has each of them once.
func TestLostChannelSet(t *testing.T) {
	t.Parallel()
	i, reg := startListing(t)
	rdb, prefix := reg.rdb, reg.prefix
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	bySet := map[string][]string{}
	var all []string
	for n := range 100 {
		name := fmt.Sprint("room-", n)
		p.subscribe(name)
		all = append(all, name)
		bySet[setKey(prefix, name)] = append(bySet[setKey(prefix, name)], name)
	}
	lost, channels := "", []string(nil)
	for key, names := range bySet {
		if len(names) > len(channels) {
			lost, channels = key, names
		}
	}
	if len(channels) < 2 {
		t.Fatal("no set has two channels")
	}
	slices.Sort(channels)
	if got := rdb.SMembers(t.Context(), lost).Val(); !slices.Equal(slices.Sorted(slices.Values(got)), channels) {
		t.Fatalf("%s has %v, want %v", lost, got, channels)
	}
	reg.take()
	if err := rdb.Del(t.Context(), lost).Err(); err != nil {
		t.Fatal(err)
	}
	reg.failOver(slots.OfKey(lost))
	await.True(t, "the set is restored", func() bool { return rdb.SCard(t.Context(), lost).Val() == int64(len(channels)) })
	i.awaitReady(t, http.StatusOK)
	if calls := reg.take(); len(calls.bound)+len(calls.held) > 0 || !slices.Equal(calls.listed, channels) {
		t.Errorf("%+v, want only the list of %v", calls, channels)
	}

	for _, limit := range []int{7, 1000} {
		var listed []string
		for cursor := ""; ; {
			_, page := i.call(t, "GET", fmt.Sprintf("/v1/channels?prefix=room-&limit=%d&cursor=%s", limit, url.QueryEscape(cursor)), "")
			for _, c := range page["channels"].([]any) {
				listed = append(listed, c.(map[string]any)["channel"].(string))
			}
			next, more := page["cursor"].(string)
			if !more {
				break
			}
			cursor = next
		}
		if slices.Sort(listed); !slices.Equal(listed, slices.Sorted(slices.Values(all))) {
			t.Errorf("pages of %d have %d channels: %v", limit, len(listed), listed)
		}
	}
	if status, _ := i.call(t, "GET", "/v1/channels?cursor=64:0", ""); status != http.StatusBadRequest {
		t.Errorf("a malformed cursor is answered with %d", status)
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	if keys := keysLike(t, rdb, prefix+"ch_list*"); len(keys) > 0 {
		t.Errorf("after the end, there are %v", keys)
	}
}

// TestLostHeldChannels checks that a broker restores what a failover lost of its own list, and adds
// channels to the list of all channels only in the same slot: the other sets are on other masters.
func TestLostHeldChannels(t *testing.T) {
	t.Parallel()
	i, reg := startListing(t)
	rdb, prefix := reg.rdb, reg.prefix
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	for n := range 100 {
		p.subscribe(fmt.Sprint("room-", n))
	}
	lists := keysLike(t, rdb, prefix+"s_ch_*")
	if len(lists) != 1 {
		t.Fatalf("the lists are %v", lists)
	}
	own, slot := lists[0], slots.OfKey(lists[0])
	all := rdb.SMembers(t.Context(), own).Val()
	slices.Sort(all)
	if len(all) < 100 {
		t.Fatalf("%s has %v", own, all)
	}
	var want listingCalls
	for _, channel := range all {
		bind, list := slots.Of(channel) == slot, slots.OfKey(setKey(prefix, channel)) == slot
		if bind {
			want.bound = append(want.bound, channel)
		}
		switch {
		case list:
			want.listed = append(want.listed, channel)
		case !bind:
			want.held = append(want.held, channel)
		}
	}
	reg.take()
	if err := rdb.Del(t.Context(), own).Err(); err != nil {
		t.Fatal(err)
	}
	reg.failOver(slot)
	await.True(t, "the list is restored", func() bool { return rdb.SCard(t.Context(), own).Val() == int64(len(all)) })
	i.awaitReady(t, http.StatusOK)
	if calls := reg.take(); !reflect.DeepEqual(calls, want) {
		t.Errorf("%+v, want %+v", calls, want)
	}
}

// TestFormerBrokerInCluster checks that a broker keeps ch_list while a broker of the release before
// the sets is listed, and only then; also if that one starts later, as in a rollback.
func TestFormerBrokerInCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.StartCluster(t, 3).Client(t)
	s, prefix := redisStore(t, rdb, testBeat)
	reg := &listingRegistry{Registry: s.registry}
	s.registry = reg
	ctx := t.Context()
	// As that release: it is in s_list and has a lease, without the name channel_sets.
	join := func() {
		t.Helper()
		for _, err := range []error{
			rdb.HSet(ctx, prefix+"s_{old}", "host", "127.0.0.1:1", "can", "changes").Err(), rdb.SAdd(ctx, prefix+"s_list", "old").Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	join()
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	reg.keeps(t, true)
	p := dialers["tcp"](t, i)
	p.connect("phone", "alice")
	listed := func(channel string) string {
		t.Helper()
		p.subscribe(channel)
		return fmt.Sprint(rdb.SIsMember(ctx, setKey(prefix, channel), channel).Val(), rdb.SIsMember(ctx, prefix+"ch_list", channel).Val())
	}
	if got := listed("before"); got != "true true" {
		t.Errorf("beside a former broker: in its set and in ch_list %s", got)
	}
	for _, err := range []error{rdb.SRem(ctx, prefix+"s_list", "old").Err(), rdb.Del(ctx, prefix+"s_{old}").Err()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	reg.keeps(t, false)
	if got := listed("between"); got != "true false" {
		t.Errorf("without former brokers: in its set and in ch_list %s", got)
	}
	join()
	reg.keeps(t, true)
	if got := listed("after"); got != "true true" {
		t.Errorf("beside a former broker that starts later: in its set and in ch_list %s", got)
	}
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	if keys := keysLike(t, rdb, prefix+"ch_list*"); len(keys) > 0 {
		t.Errorf("after the end, there are %v", strings.Join(keys, " "))
	}
}
