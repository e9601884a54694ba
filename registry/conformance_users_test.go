package registry

import (
	"fmt"
	"testing"
)

func testUserClients(t *testing.T, s store) {
	ctx := t.Context()
	want(t, []Binding(nil))(s.User(ctx, "ann"))
	ok(t, bindUser(ctx, s, "ann", Binding{"phone", "a", 5}))
	ok(t, bindUser(ctx, s, "ann", Binding{"laptop", "host:with:colons", 6}))
	ok(t, bindUser(ctx, s, "bob", Binding{"phone", "a", 7}))
	want(t, []Binding{{"laptop", "host:with:colons", 6}, {"phone", "a", 5}})(s.User(ctx, "ann"))

	want(t, []bool{true, false, false, false, false})(s.UsersHave(ctx, []UserBinding{
		{User: "ann", Binding: Binding{"phone", "a", 5}}, {User: "ann", Binding: Binding{"phone", "b", 5}},
		{User: "ann", Binding: Binding{"phone", "a", 4}}, {User: "ann", Binding: Binding{"tab", "a", 5}},
		{User: "unknown", Binding: Binding{"phone", "a", 5}},
	}))

	ok(t, releaseUser(ctx, s, "ann", "laptop", 6))
	want(t, []Binding{{"laptop", "", 6}, {"phone", "a", 5}})(s.User(ctx, "ann"))
	ok(t, s.ForgetUser(ctx, "ann", "laptop", 6))
	ok(t, s.ForgetUser(ctx, "ann", "laptop", 6))
	want(t, []Binding{{"phone", "a", 5}})(s.User(ctx, "ann"))
	ok(t, releaseUser(ctx, s, "unknown", "phone", 1))
	ok(t, s.ForgetUser(ctx, "unknown", "phone", 1))
	want(t, []Binding(nil))(s.User(ctx, "unknown"))
	want(t, [][]Binding{{{"phone", "a", 5}}, nil, {{"phone", "a", 7}}, {{"phone", "a", 5}}})(
		s.Users(ctx, []string{"ann", "unknown", "bob", "ann"}))
	want(t, [][]Binding{})(s.Users(ctx, nil))
}

func testGenerations(t *testing.T, s store) {
	bound := Binding{"phone", "a", 5}
	for _, c := range []struct {
		name string
		call func(user string) error
		want []Binding
	}{
		{"bind older", func(u string) error { return bindUser(t.Context(), s, u, Binding{"phone", "b", 4}) }, []Binding{bound}},
		{"bind equal", func(u string) error { return bindUser(t.Context(), s, u, Binding{"phone", "b", 5}) }, []Binding{{"phone", "b", 5}}},
		{"bind newer", func(u string) error { return bindUser(t.Context(), s, u, Binding{"phone", "b", 10}) }, []Binding{{"phone", "b", 10}}},
		{"release older", func(u string) error { return releaseUser(t.Context(), s, u, "phone", 4) }, []Binding{bound}},
		{"release equal", func(u string) error { return releaseUser(t.Context(), s, u, "phone", 5) }, []Binding{{"phone", "", 5}}},
		{"release newer", func(u string) error { return releaseUser(t.Context(), s, u, "phone", 6) }, []Binding{bound}},
		{"forget older", func(u string) error { return s.ForgetUser(t.Context(), u, "phone", 4) }, []Binding{bound}},
		{"forget equal", func(u string) error { return s.ForgetUser(t.Context(), u, "phone", 5) }, nil},
		{"forget newer", func(u string) error { return s.ForgetUser(t.Context(), u, "phone", 10) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			ok(t, bindUser(t.Context(), s, c.name, bound))
			ok(t, c.call(c.name))
			want(t, c.want)(s.User(t.Context(), c.name))
		})
	}
}

func testLargeGenerations(t *testing.T, s store) {
	ctx := t.Context()
	const top = 1<<53 - 1
	ok(t, bindUser(ctx, s, "ann", Binding{"phone", "a", top}))
	ok(t, bindUser(ctx, s, "ann", Binding{"phone", "b", top - 1}))
	ok(t, releaseUser(ctx, s, "ann", "phone", top-1))
	ok(t, s.ForgetUser(ctx, "ann", "phone", top-1))
	want(t, []Binding{{"phone", "a", top}})(s.User(ctx, "ann"))
	ok(t, releaseUser(ctx, s, "ann", "phone", top))
	want(t, []Binding{{"phone", "", top}})(s.User(ctx, "ann"))
}

func testEviction(t *testing.T, s store) {
	ctx := t.Context()
	client := func(i int) string { return fmt.Sprintf("client-%02d", i) }
	for i := range MaxClients {
		ok(t, bindUser(ctx, s, "ann", Binding{client(i), "a", int64(100 + i)}))
	}
	fails(t, bindUser(ctx, s, "ann", Binding{"new", "a", 500}), ErrTooManyClients)
	ok(t, bindUser(ctx, s, "ann", Binding{client(0), "b", 300})) // a known client needs no room

	ok(t, releaseUser(ctx, s, "ann", client(9), 109))
	ok(t, releaseUser(ctx, s, "ann", client(7), 107)) // 7 has a lower generation, 3 is online
	ok(t, bindUser(ctx, s, "ann", Binding{"new", "a", 500}))
	bindings, err := s.User(ctx, "ann")
	ok(t, err)
	has := map[string]bool{}
	for _, b := range bindings {
		has[b.Client] = true
	}
	if len(bindings) != MaxClients || !has["new"] || !has[client(9)] || !has[client(3)] || has[client(7)] {
		t.Fatalf("clients after the eviction: %v", bindings)
	}
}

// testMaxOnline binds more clients of a user than may be online.
func testMaxOnline(t *testing.T, s store) {
	switch r := s.contract.(type) {
	case *Memory:
		r.opts.MaxOnline = 2
	case *Redis:
		opts := r.opts
		opts.MaxOnline = 2
		s.contract = NewRedis(r.pipe, opts)
	}
	ctx := t.Context()
	bind := func(client, server string, generation int64) error {
		return bindUser(ctx, s, "ann", Binding{client, server, generation})
	}
	for i, client := range []string{"a", "b", "c"} { // offline clients do not count
		ok(t, bind(client, "x", int64(10+i)))
		ok(t, releaseUser(ctx, s, "ann", client, int64(10+i)))
	}
	ok(t, bind("a", "x", 20))
	ok(t, bind("b", "x", 21))
	fails(t, bind("c", "x", 22), ErrTooManyClients) // known, but offline
	fails(t, bind("d", "x", 23), ErrTooManyClients) // unknown
	ok(t, bind("a", "y", 24))                       // already online
	ok(t, bind("a", "x", 20))                       // an outdated generation is not an error
	ok(t, releaseUser(ctx, s, "ann", "b", 21))
	ok(t, bind("c", "x", 25))
	fails(t, bind("b", "x", 26), ErrTooManyClients)
	want(t, []Binding{{"a", "y", 24}, {"b", "", 21}, {"c", "x", 25}})(s.User(ctx, "ann"))
}

func testUserExpires(t *testing.T, s store) {
	ctx := t.Context()
	ok(t, bindUser(ctx, s, "ann", Binding{"phone", "a", 9}))
	s.loseUser("ann")
	want(t, []Binding(nil))(s.User(ctx, "ann"))
	ok(t, releaseUser(ctx, s, "ann", "phone", 9))
	want(t, []Binding(nil))(s.User(ctx, "ann"))
	ok(t, bindUser(ctx, s, "ann", Binding{"phone", "b", 1})) // the expired generation is forgotten
	want(t, []Binding{{"phone", "b", 1}})(s.User(ctx, "ann"))
}
