package redispipe

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/meter"
)

// TestRepliesAreCounted checks, for each type of command, that the reply counts in the Meter of
// the call, and about as many bytes as Redis sends.
func TestRepliesAreCounted(t *testing.T) {
	each := func(t *testing.T, client redis.UniversalClient) {
		p, key := New(client, Options{}), prefix()+"{m}"
		text := strings.Repeat("x", 1000)
		for _, err := range []error{
			client.Set(t.Context(), key+"s", text, 0).Err(), client.HSet(t.Context(), key+"h", "field", text).Err(),
			client.RPush(t.Context(), key+"l", text).Err(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		read := script(t, `return {redis.call('GET', KEYS[1]), {1, redis.call('GET', KEYS[1])}}`)
		each := &BatchScript{Script: script(t, `local all = {} for i, key in ipairs(KEYS) do all[i] = redis.call('GET', key) end return all`)}
		for name, c := range map[string]struct {
			want int
			call func(ctx context.Context) error
		}{
			"string": {1000, func(ctx context.Context) error { return p.Do(ctx, redis.NewStringCmd(ctx, "get", key+"s")) }},
			"any":    {1000, func(ctx context.Context) error { return p.Do(ctx, redis.NewCmd(ctx, "get", key+"s")) }},
			"hash": {1000, func(ctx context.Context) error {
				return p.Do(ctx, redis.NewMapStringStringCmd(ctx, "hgetall", key+"h"))
			}},
			"values": {1000, func(ctx context.Context) error { return p.Do(ctx, redis.NewSliceCmd(ctx, "hmget", key+"h", "field")) }},
			"list": {1000, func(ctx context.Context) error {
				return p.Do(ctx, redis.NewStringSliceCmd(ctx, "lrange", key+"l", 0, -1))
			}},
			"scan":   {1000, func(ctx context.Context) error { return p.Do(ctx, redis.NewScanCmd(ctx, nil, "hscan", key+"h", 0)) }},
			"number": {0, func(ctx context.Context) error { return p.Do(ctx, redis.NewIntCmd(ctx, "strlen", key+"s")) }},
			"members": {2 * elementBytes, func(ctx context.Context) error {
				return p.Do(ctx, redis.NewBoolSliceCmd(ctx, "smismember", key+"none", "a", "b"))
			}},
			"script": {2000, func(ctx context.Context) error {
				_, err := p.Eval(ctx, read, []string{key + "s"})
				return err
			}},
			"all": {2000, func(ctx context.Context) error {
				return p.DoAll(ctx, []redis.Cmder{redis.NewStringCmd(ctx, "get", key+"s"), redis.NewStringCmd(ctx, "get", key+"s")})
			}},
			"targets": {2000, func(ctx context.Context) error {
				target := Target{Script: each, Keys: []string{key + "s"}}
				return p.EvalEach(ctx, target, target)[1].Err
			}},
		} {
			m := new(meter.Meter)
			ctx := meter.With(t.Context(), m)
			if err := c.call(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if n := m.Bytes(); n < c.want || n > c.want+100 {
				t.Errorf("%s: %d bytes count, want %d", name, n, c.want)
			}
			if err := c.call(t.Context()); err != nil {
				t.Errorf("%s without a Meter: %v", name, err)
			}
		}
	}
	t.Run("server", func(t *testing.T) { each(t, single.Client(t)) })
	t.Run("cluster", func(t *testing.T) { each(t, cluster.Client(t)) })
}

// TestCommandTypesAreKnown checks that commandBytes knows all types of commands that the stores
// use.
func TestCommandTypesAreKnown(t *testing.T) {
	known := map[string]bool{
		"Bool": true, "Int": true, "Status": true, // of one element
		"": true, "Slice": true, "String": true, "StringSlice": true, "BoolSlice": true, "Scan": true, "MapStringString": true, "ZSlice": true,
	}
	created := regexp.MustCompile(`redis\.New(\w*)Cmd\(`)
	seen := 0
	for _, dir := range []string{"broker", "events", "janitor", "kit", "queue", "registry"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range created.FindAllSubmatch(text, -1) {
				if seen++; !known[string(found[1])] {
					t.Errorf("%s: commandBytes does not know the type %sCmd", path, found[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("no command was found")
	}
}
