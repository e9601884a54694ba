package queue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// pushRequest pushes a request of size bytes.
func pushRequest(t *testing.T, f fixture, list int, sender string, size int) error {
	t.Helper()
	return f.PushRequest(t.Context(), Request{list, sender, []byte(strings.Repeat("1", size))})
}

func testRequests(t *testing.T, open opener) {
	f := open(t, Options{RequestCap: 2})
	for i := range 2 {
		ok(t, f.PushRequest(t.Context(), Request{0, "alice", fmt.Append(nil, i)}))
	}
	fails(t, "at the cap", pushRequest(t, f, 0, "alice", 1), ErrRequestCap)
	fails(t, "at the cap", pushRequest(t, f, 0, "bob", 1), ErrFull)
	ok(t, pushRequest(t, f, 1, "alice", 1))
	if got := f.popRequests(t, 0, 3); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("the worker got %q", got)
	}
	ok(t, pushRequest(t, f, 0, "alice", 1))
}

func testRequestBytes(t *testing.T, open opener) {
	f := open(t, Options{RequestBytes: 100})
	ok(t, pushRequest(t, f, 0, "alice", 60))
	fails(t, "above the cap", pushRequest(t, f, 0, "bob", 41), ErrRequestBytes)
	ok(t, pushRequest(t, f, 0, "bob", 40))
	fails(t, "at the cap", pushRequest(t, f, 0, "carol", 1), ErrRequestBytes)
	f.popRequests(t, 0, 1)
	ok(t, pushRequest(t, f, 0, "carol", 60))
	f.popRequests(t, 0, 1)
	fails(t, "a large one in a list that is not empty", pushRequest(t, f, 0, "dave", 101), ErrRequestBytes)
	f.popRequests(t, 0, 1)
	ok(t, pushRequest(t, f, 0, "dave", 101)) // in an empty list, or as the only one of its sender
	fails(t, "after a large one", pushRequest(t, f, 0, "alice", 1), ErrRequestBytes)
}

func testRequestShare(t *testing.T, open opener) {
	f := open(t, Options{RequestShare: 3, RequestShareBytes: 100})
	for range 3 {
		ok(t, pushRequest(t, f, 0, "alice", 10))
	}
	fails(t, "at the share", pushRequest(t, f, 0, "alice", 1), ErrRequestShare)
	fails(t, "at the share", pushRequest(t, f, 0, "alice", 1), ErrFull)
	ok(t, pushRequest(t, f, 0, "bob", 60))
	fails(t, "above the share of bytes", pushRequest(t, f, 0, "bob", 41), ErrRequestShareBytes)
	ok(t, pushRequest(t, f, 0, "bob", 40))
	ok(t, pushRequest(t, f, 0, "carol", 101)) // in an empty list, or as the only one of its sender
	fails(t, "after a large one", pushRequest(t, f, 0, "carol", 1), ErrRequestShareBytes)
	ok(t, pushRequest(t, f, 1, "alice", 1)) // each list has its own shares
}

// testRequestsPopped checks that requests that workers popped no longer count towards the shares.
func testRequestsPopped(t *testing.T, open opener) {
	f := open(t, Options{RequestShare: 2, RequestShareBytes: 100, RequestBytes: 130})
	ok(t, pushRequest(t, f, 0, "alice", 20))
	ok(t, pushRequest(t, f, 0, "bob", 20))
	ok(t, pushRequest(t, f, 0, "alice", 70))
	ok(t, pushRequest(t, f, 0, "bob", 20))
	fails(t, "the list is full", pushRequest(t, f, 0, "carol", 1), ErrRequestBytes)
	f.popRequests(t, 0, 1)
	fails(t, "bob has two", pushRequest(t, f, 0, "bob", 1), ErrRequestShare)
	fails(t, "alice has 70", pushRequest(t, f, 0, "alice", 31), ErrFull)
	f.popRequests(t, 0, 1)
	ok(t, pushRequest(t, f, 0, "bob", 20))
	fails(t, "bob has two", pushRequest(t, f, 0, "bob", 1), ErrRequestShare)
	ok(t, pushRequest(t, f, 0, "alice", 20))
	f.popRequests(t, 0, 100)
	for range 2 {
		ok(t, pushRequest(t, f, 0, "alice", 50))
	}
	fails(t, "alice has two", pushRequest(t, f, 0, "alice", 1), ErrRequestShare)
}

func testRequestsExpire(t *testing.T, open opener) {
	f := open(t, Options{RequestShare: 1, RequestTTL: time.Minute})
	ok(t, pushRequest(t, f, 0, "alice", 10))
	f.expire(t, time.Minute, f.keys.requests(0), f.keys.requestLedger(0), f.keys.requestSums(0))
	if got := f.popRequests(t, 0, 1); len(got) > 0 {
		t.Errorf("the worker got %q", got)
	}
	ok(t, pushRequest(t, f, 0, "alice", 10))
}

// TestRedisRequestLedgerIsCorrected changes a list without its ledger, and from the wrong end. The
// sums are correct again after the list was empty once.
func TestRedisRequestLedgerIsCorrected(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{RequestShare: 2, RequestTTL: time.Minute})
	key, n := f.keys.requests(0), 0
	held := func(want int) {
		t.Helper()
		if n = int(must(client.LLen(t.Context(), key).Result())(t)); n != want {
			t.Fatalf("%d are held, want %d", n, want)
		}
	}
	ok(t, client.RPush(t.Context(), key, "a", "b", "c").Err())
	ok(t, pushRequest(t, f, 0, "alice", 10))
	f.popRequests(t, 0, 3)
	ok(t, pushRequest(t, f, 0, "alice", 10))
	held(2)
	fails(t, "at the share", pushRequest(t, f, 0, "alice", 10), ErrRequestShare)
	ok(t, client.LPush(t.Context(), key, "again").Err()) // a worker returns a request
	fails(t, "at the share", pushRequest(t, f, 0, "alice", 10), ErrRequestShare)
	ok(t, client.RPop(t.Context(), key).Err())
	ok(t, client.LTrim(t.Context(), key, 1, 0).Err())
	held(0)
	for range 2 {
		ok(t, pushRequest(t, f, 0, "alice", 10))
	}
	for _, k := range []string{key, f.keys.requestLedger(0), f.keys.requestSums(0)} {
		if left := must(client.PTTL(t.Context(), k).Result())(t); left <= 0 || left > time.Minute {
			t.Errorf("%s lives %v", k, left)
		}
	}
	sums := must(client.HGetAll(t.Context(), f.keys.requestSums(0)).Result())(t)
	if len(sums) != 3 || sums["bytes"] != "20" {
		t.Errorf("the sums are %v", sums)
	}
	// The sums of senders without requests are removed.
	for i := range 1500 {
		ok(t, pushRequest(t, f, 1, fmt.Sprint("user-", i), 5))
	}
	f.popRequests(t, 1, 1499)
	ok(t, pushRequest(t, f, 1, "alice", 7))
	sums = must(client.HGetAll(t.Context(), f.keys.requestSums(1)).Result())(t)
	if len(sums) != 5 || sums["bytes"] != "12" {
		t.Errorf("the sums are %v", sums)
	}
}
