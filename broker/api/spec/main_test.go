package spec_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/internal/redistest"
	"switchboard/kit/kittest"
)

// timeout is a safety net: a test that waits this long has failed.
const timeout = 20 * time.Second

var redis *redistest.Server

// silent is a logger of go-redis, which reports each failed dial.
type silent struct{}

// Printf implements the interface of goredis.SetLogger.
func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	goredis.SetLogger(silent{})
	os.Exit(redistest.Main(m, &redis, nil,
		// Those of gnet's worker pool, which last as long as the process.
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
		goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"),
		// That of a Redis pool whose server was killed, which looks once a second whether it is closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")))
}

// The API keys of the test brokers. The key loud is for the test of rates.
const (
	keyPush  = "push-0123456789abcdef"
	keyRead  = "read-0123456789abcdef"
	keyAdmin = "admin-0123456789abcdef"
	keyLoud  = "loud-0123456789abcdef"
)

// keys are the API keys by scope. Any key will do for the scope "".
var keys = map[string]string{"push": keyPush, "read": keyRead, "admin": keyAdmin, "": keyRead}

// pushRate is the most pushes of a key a second.
const pushRate = 200

var tokenSecret = []byte(strings.Repeat("t", 32))

// token returns a token of a user. With a client, it is for that client only.
func token(t *testing.T, user, client string) string {
	t.Helper()
	claims := jwt.MapClaims{"sub": user, "exp": time.Now().Add(time.Hour).Unix(), "info": object{"name": user}}
	if client != "" {
		claims["client"] = client
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(tokenSecret)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newBroker runs a broker in memory with all of the kit.
func newBroker(t *testing.T) *kittest.Broker { return startBroker(t, kittest.NewMemory(), nil) }

// startBroker runs a broker with API keys, token keys and all of the kit.
func startBroker(t *testing.T, store kittest.Store, change func(*broker.Options)) *kittest.Broker {
	t.Helper()
	return store.Start(t, func(o *broker.Options) {
		o.Version = "test"
		apiKeys, err := auth.NewKeys([]string{
			"plain:" + keyPush + " push", "plain:" + keyRead + " read", "plain:" + keyAdmin + " admin", "plain:" + keyLoud + " push+read",
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Access.Keys, o.Access.ClientPublish = apiKeys, true
		if o.Access.Tokens, err = auth.NewTokens(auth.Options{HS256: [][]byte{tokenSecret}}); err != nil {
			t.Fatal(err)
		}
		o.Access.Anonymous = true
		o.Limits.PushRate = pushRate
		o.Extensions = kit(store)
		if change != nil {
			change(o)
		}
	})
}

// httpClient does not follow redirects, and keeps no connection that would outlive a broker.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: timeout}
