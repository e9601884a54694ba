package redispipe

import (
	"context"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/meter"
)

// elementBytes is about how many bytes of a reply an element takes besides its text.
const elementBytes = 8

// countReplies counts the replies of commands in the Meter of ctx. Commands that failed count
// nothing.
func countReplies(ctx context.Context, cmds ...redis.Cmder) {
	m := meter.Of(ctx)
	for i := 0; m != nil && i < len(cmds); i++ {
		m.Add(commandBytes(cmds[i]))
	}
}

// commandBytes returns about how many bytes the reply of a command has.
func commandBytes(cmd redis.Cmder) (n int) {
	switch c := cmd.(type) {
	case unretried:
		return valueBytes(c.Val())
	case *redis.Cmd:
		return valueBytes(c.Val())
	case *redis.SliceCmd:
		return valueBytes(c.Val())
	case *redis.StringCmd:
		return valueBytes(c.Val())
	case *redis.StringSliceCmd:
		return textBytes(c.Val())
	case *redis.BoolSliceCmd:
		return len(c.Val()) * elementBytes
	case *redis.ZSliceCmd:
		for _, z := range c.Val() {
			n += valueBytes(z.Member) + elementBytes
		}
		return n
	case *redis.ScanCmd:
		texts, _ := c.Val()
		return textBytes(texts)
	case *redis.MapStringStringCmd:
		for name, value := range c.Val() {
			n += len(name) + len(value) + 2*elementBytes
		}
		return n
	}
	return elementBytes // a number or a status
}

func textBytes(texts []string) (n int) {
	for _, text := range texts {
		n += len(text) + elementBytes
	}
	return n
}

// valueBytes returns about how many bytes of a reply a value has.
func valueBytes(value any) int {
	switch v := value.(type) {
	case string:
		return len(v) + elementBytes
	case []any:
		n := elementBytes
		for _, one := range v {
			n += valueBytes(one)
		}
		return n
	}
	return elementBytes
}
