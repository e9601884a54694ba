package redispipe

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/allocs"
)

func hot(client redis.UniversalClient) []allocs.Case {
	source := fstest.MapFS{"lua/x.lua": {Data: []byte("#!lua\nreturn {'1', '0', 0}")}}
	pipe := New(client, Options{})
	script, keys := MustScript(source, "x"), []string{prefix() + "k"}
	return []allocs.Case{
		allocs.Of("one script", 30, func() {
			if _, err := pipe.Eval(context.Background(), script, keys, "payload", 10); err != nil {
				panic(err)
			}
		}),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot(single.Client(t))) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot(single.Client(b))) }
