package registry

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// issuedAt returns a binding with a token of a time.
func issuedAt(user, client string, generation, issued int64) UserBinding {
	return UserBinding{User: user, Binding: Binding{user + "/" + client, "a", generation}, Issued: issued}
}

// refusals returns which of the bindings BindUsers and CheckTokens refuse. Both must agree.
func refusals(t *testing.T, s store, list ...UserBinding) (refused []bool) {
	t.Helper()
	checked, bound := s.CheckTokens(t.Context(), list), s.BindUsers(t.Context(), list)
	for i := range list {
		if checked[i] == nil {
			ok(t, bound[i])
		} else {
			fails(t, checked[i], ErrRevoked)
			fails(t, bound[i], ErrRevoked)
		}
		refused = append(refused, checked[i] != nil)
	}
	return refused
}

func testRevoke(t *testing.T, s store) {
	ctx := t.Context()
	const T int64 = 1_795_000_000_000
	ok(t, s.BindUsers(ctx, []UserBinding{issuedAt("ann", "phone", 5, T-1)})[0])
	ok(t, s.BindUsers(ctx, []UserBinding{issuedAt("ann", "tablet", 6, T-1)})[0])
	ok(t, s.BindUsers(ctx, []UserBinding{issuedAt("ann", "tv", 7, T-1)})[0])
	ok(t, releaseUser(ctx, s, "ann", "ann/tv", 7))
	begun := time.Now()
	v, err := s.Revoke(ctx, Revocation{User: "ann", Before: T})
	ok(t, err)
	want(t, []Binding{{"ann/phone", "a", 5}, {"ann/tablet", "a", 6}})(v.Clients, nil)
	if life := time.UnixMilli(v.Until).Sub(begun); v.Before != T || life < 29*24*time.Hour || life > 31*24*time.Hour {
		t.Errorf("revoked: %+v", v)
	}
	want[int64](t, T)(s.RevokedBefore(ctx, "ann"))
	want[int64](t, 0)(s.RevokedBefore(ctx, "bob"))
	want(t, []bool{true, false, false, true, false})(refusals(t, s,
		issuedAt("ann", "phone", 8, T-1), issuedAt("ann", "phone", 9, T), issuedAt("ann", "tv", 10, T+1),
		issuedAt("ann", "tv", 11, 0), issuedAt("bob", "phone", 12, 0)), nil)
	want(t, []Binding{{"ann/phone", "a", 9}, {"ann/tablet", "a", 6}, {"ann/tv", "a", 10}})(s.User(ctx, "ann")) // a refusal changes nothing

	v, err = s.Revoke(ctx, Revocation{User: "bob", Client: "bob/phone", Before: T})
	ok(t, err)
	want(t, []Binding{{"bob/phone", "a", 12}})(v.Clients, nil)
	want(t, []bool{true, false})(refusals(t, s, issuedAt("bob", "phone", 13, T-1), issuedAt("bob", "tablet", 14, T-1)), nil)
	want[int64](t, 0)(s.RevokedBefore(ctx, "bob"))

	before := time.Now().Add(-time.Minute).UnixMilli()
	if v, err = s.Revoke(ctx, Revocation{User: "carl"}); err != nil || v.Before < before || v.Before > before+2*60_000 || len(v.Clients) != 0 {
		t.Errorf("revoked up to the present: %+v, %v", v, err)
	}
	_, err = s.Revoke(ctx, Revocation{User: "dan", Before: T, Durable: true})
	if _, memory := s.contract.(*Memory); memory {
		fails(t, err, ErrNoReplicas)
		want[int64](t, 0)(s.RevokedBefore(ctx, "dan"))
	} else {
		fails(t, err, ErrNotReplicated)
		want[int64](t, T)(s.RevokedBefore(ctx, "dan"))
	}
}

func testRevokeLater(t *testing.T, s store) {
	const T int64 = 1_795_000_000_000
	for _, client := range []string{"", "ann/phone"} {
		for i, before := range []int64{T, T + 5, T + 2} {
			v, err := s.Revoke(t.Context(), Revocation{User: "ann", Client: client, Before: before})
			ok(t, err)
			if wanted := []int64{T, T + 5, T + 5}[i]; v.Before != wanted {
				t.Errorf("%q: after %d it is %d", client, before, v.Before)
			}
		}
	}
	want(t, []bool{true, false})(refusals(t, s, issuedAt("ann", "phone", 1, T+4), issuedAt("ann", "phone", 2, T+5)), nil)
}

func testRevokedExpires(t *testing.T, s store) {
	_, err := s.Revoke(t.Context(), Revocation{User: "ann"})
	ok(t, err)
	want(t, []bool{true})(refusals(t, s, issuedAt("ann", "phone", 1, 1)), nil)
	s.loseRevoked("ann")
	want(t, []bool{false})(refusals(t, s, issuedAt("ann", "phone", 1, 1)), nil)
}

// testRevokeRace binds and revokes at the same time: either the bind is refused, or the revocation
// finds the client.
func testRevokeRace(t *testing.T, s store) {
	ctx := t.Context()
	const T int64 = 1_795_000_000_000
	for round := range 50 {
		user := fmt.Sprint("user-", round)
		var wg sync.WaitGroup
		var bound error
		var v Revoked
		wg.Go(func() { bound = s.BindUsers(ctx, []UserBinding{issuedAt(user, "phone", 1, T)})[0] })
		wg.Go(func() { v, _ = s.Revoke(ctx, Revocation{User: user, Before: T + 1}) })
		wg.Wait()
		if (bound == nil) != (len(v.Clients) == 1) {
			t.Errorf("the bind ends with %v, and the revocation finds %v", bound, v.Clients)
		}
	}
}

func testRevokedSince(t *testing.T, s store) {
	if _, memory := s.contract.(*Memory); memory {
		return // the only server hears of all revocations
	}
	ctx := t.Context()
	read := func(since int64) (users []string, next int64) {
		t.Helper()
		for more := true; more; {
			var page []string
			var err error
			page, since, more, err = s.RevokedSince(ctx, since)
			ok(t, err)
			users = append(users, page...)
		}
		return users, since
	}
	users, next := read(0)
	want(t, []string(nil))(users, nil)
	revoke := func(users ...string) {
		t.Helper()
		for _, user := range users {
			_, err := s.Revoke(ctx, Revocation{User: user})
			ok(t, err)
		}
	}
	revoke("ann", "bob", "ann", "carl") // perhaps within one millisecond
	users, next = read(next)
	want(t, []string{"bob", "ann", "carl"})(users, nil)
	users, next = read(next)
	want(t, []string(nil))(users, nil)
	revoke("bob")
	users, _ = read(next)
	want(t, []string{"bob"})(users, nil)

	var many []string
	for i := range revokedPage + 10 {
		many = append(many, fmt.Sprint("user-", i))
	}
	var wg sync.WaitGroup
	for _, user := range many {
		wg.Go(func() { _, _ = s.Revoke(ctx, Revocation{User: user}) })
	}
	wg.Wait()
	_, next = read(next)
	if users, _ := read(0); len(users) != len(many)+3 {
		t.Errorf("%d users are listed", len(users))
	}
	if users, _ := read(next); len(users) != 0 {
		t.Errorf("the users %v are listed again", users)
	}
}

// TestRevokedListEnds: the list of revoked tokens forgets users after some minutes.
func TestRevokedListEnds(t *testing.T) {
	client := single.Client(t)
	r, ctx := newRedis(client), context.Background()
	key := r.keys.revokedList()
	old := float64(time.Now().Add(-revokedListTTL - time.Minute).UnixMilli())
	ok(t, client.Do(ctx, "zadd", key, old, "old", old+1, "older").Err())
	_, err := r.Revoke(ctx, Revocation{User: "ann"})
	ok(t, err)
	users, _, _, err := r.RevokedSince(ctx, 0)
	want(t, []string{"ann"})(users, err)
	if ttl := client.PTTL(ctx, key).Val(); ttl <= 0 || ttl > revokedListTTL {
		t.Errorf("the list ends in %v", ttl)
	}
}
