package redispipe

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"io/fs"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script. It runs by its SHA-1 digest.
type Script struct {
	Name   string // file name without .lua
	Source string
	digest string
}

// MustScript reads lua/<name>.lua from files, an embed.FS. pieces are files of the same folder that
// several scripts share: their text follows the first line of the script, in the given order, so
// that the script can use their local variables. MustScript panics if a file is missing, which is a
// programming error.
func MustScript(files fs.FS, name string, pieces ...string) *Script {
	first, rest, _ := strings.Cut(mustRead(files, name), "\n")
	var source strings.Builder
	source.WriteString(first + "\n")
	for _, piece := range pieces {
		source.WriteString(mustRead(files, piece))
	}
	source.WriteString(rest)
	sum := sha1.Sum([]byte(source.String()))
	return &Script{Name: name, Source: source.String(), digest: hex.EncodeToString(sum[:])}
}

func mustRead(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, "lua/"+name+".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// unretried is a script command that go-redis never repeats: a script that appends must not run
// twice. Without it, a Cluster client repeats a pipeline whose connection breaks, even if retries
// are disabled.
type unretried struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (unretried) NoRetry() bool { return true }

func (s *Script) evalSha(ctx context.Context, keys []string, args []any) unretried {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, "evalsha", s.digest, len(keys))
	for _, k := range keys {
		words = append(words, k)
	}
	cmd := redis.NewCmd(ctx, append(words, args...)...)
	if len(keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return unretried{cmd}
}

func isNoScript(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT")
}

// sendSource changes cmd from EVALSHA to EVAL, so that it sends the source, not the digest.
func (s *Script) sendSource(cmd redis.Cmder) {
	words := cmd.Args()
	words[0], words[1] = "eval", s.Source
}
