package account

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/extension"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
	"switchboard/queue"
	"switchboard/registry"
)

// TestOptionErrors: New names the option that is wrong.
func TestOptionErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"signing_key: it has 3 bytes": func(o *Options) { o.SigningKey = []byte("abc") },
		"the broker refuses tokens that are signed with signing_key": func(o *Options) {
			o.SigningKey = []byte("another key than that of the broker")
		},
		"token_life":      func(o *Options) { o.TokenLife = time.Millisecond },
		"renewal_life":    func(o *Options) { o.RenewalLife = time.Millisecond },
		"logins":          func(o *Options) { o.Logins = 65 },
		"iterations":      func(o *Options) { o.Iterations = 1000 },
		"former_iter":     func(o *Options) { o.FormerIterations = 1000 },
		"min_password":    func(o *Options) { o.MinPassword = 1000 },
		"a rate is below": func(o *Options) { o.NameRate = -1 },
	} {
		o := options()
		change(&o)
		tokens, err := auth.NewTokens(auth.Options{HS256: [][]byte{signingKey}})
		if err != nil {
			t.Fatal(err)
		}
		members := registry.NewMemory(registry.Options{})
		_, err = broker.New(broker.Options{
			Store:  broker.StoreOptions{Registry: members, Queue: queue.NewMemory(queue.Options{}, func(string) []string { return nil })},
			Access: broker.AccessOptions{Tokens: tokens},
			Extensions: []func(*extension.Host) (extension.Extension, error){func(h *extension.Host) (extension.Extension, error) {
				_, err := New(h, o)
				return extension.Extension{}, err
			}},
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestOwnRedis: accounts in a Redis of their own, while the broker keeps all else in memory.
func TestOwnRedis(t *testing.T) {
	redis := kittest.NewRedis(kittest.Cluster.Client(t))
	own := func(o *Options) {
		o.Store, o.Index = RedisStore(redis.Pipe, redis.Prefix), redis.Index("accounts")
	}
	a, _ := start(t, kittest.NewMemory(), own)
	b, _ := start(t, kittest.NewMemory(), own)
	amy := a.register(t, "amy")
	_, err := b.Register(t.Context(), Registration{Name: "amy", Password: "long enough"}, here)
	wantCode(t, err, wire.Conflict)
	ok[Session](t)(b.login(t, "amy", "secret of amy"))
	ok[Session](t)(b.Renew(t.Context(), amy.Renewal, here))
	if p := ok[Page](t)(b.List(t.Context(), "", "", 10)); p.Total != 1 {
		t.Errorf("the list has %d accounts", p.Total)
	}
}

// TestDurable: in a store without replicas, a durable account is refused and not acknowledged.
func TestDurable(t *testing.T) {
	a, _ := start(t, kittest.NewMemory(), func(o *Options) { o.Durable = true })
	if _, err := a.Register(t.Context(), Registration{Name: "amy", Password: "long enough"}, here); err == nil {
		t.Error("the account was acknowledged")
	}
}

// TestList: pages of all accounts, the newest first, and of those in a state.
func TestList(t *testing.T) {
	eachStore(t, func(t *testing.T, a, b instance) {
		var ids []string
		for _, n := range []string{"amy", "bob", "carl", "dora", "eve"} {
			ids = append(ids, a.register(t, n).Account.ID)
		}
		ok[Account](t)(b.Lock(t.Context(), ids[1]))
		seen, cursor := map[string]bool{}, ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			p := ok[Page](t)(b.List(t.Context(), "", cursor, 2))
			for _, raw := range p.Accounts {
				seen[string(raw)] = true
			}
			cursor = p.Cursor
		}
		if p := ok[Page](t)(a.List(t.Context(), Locked, "", 10)); len(seen) != 5 || p.Total != 1 || !strings.Contains(string(p.Accounts[0]), ids[1]) {
			t.Errorf("%d accounts are listed, locked are %s", len(seen), p.Accounts)
		}
		_, err := a.List(t.Context(), "lost", "", 10)
		wantCode(t, err, wire.BadRequest)
		_, err = a.List(t.Context(), "", "x", 10)
		wantCode(t, err, wire.BadRequest)
	})
}

// TestAddressBehindProxy: the last login has the address that a trusted proxy names.
func TestAddressBehindProxy(t *testing.T) {
	networks := ok[[]netip.Prefix](t)(limit.Networks([]string{"127.0.0.1"}))
	var accounts *Accounts
	tokens, _ := auth.NewTokens(auth.Options{HS256: [][]byte{signingKey}})
	makeExtension := kittest.With(func(h *extension.Host) (_ extension.Extension, err error) {
		if accounts, err = New(h, options()); err != nil {
			return extension.Extension{}, err
		}
		return accounts.Extension(), nil
	})
	b := kittest.NewMemory().Start(t, func(o *broker.Options) {
		makeExtension(o)
		o.Access.Tokens, o.Limits.Proxies = tokens, networks
		o.Access.Origins.Patterns = []string{"https://app.example.com"}
	})
	b.OK(t, http.MethodPost, "/v1/accounts", `{"name":"amy","password":"secret of amy"}`, "X-Forwarded-For", "1.2.3.4, 198.51.100.9")
	if got := ok[Account](t)(accounts.Find(t.Context(), "amy")); got.Login.Address != "198.51.100.9" {
		t.Errorf("the login came from %s", got.Login.Address)
	}
	status := b.Call(t, http.MethodPost, "/v1/accounts/login", `{}`, nil, "Origin", "https://app.example.com", "X-Forwarded-For", "192.0.2.1")
	if status != http.StatusUnauthorized {
		t.Errorf("a page of an allowed origin gets %d", status)
	}
	b.Refused(t, "forbidden", http.MethodPost, "/v1/accounts/login", `{}`, "Origin", "https://evil.example.com")
}
