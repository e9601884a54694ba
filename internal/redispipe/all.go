package redispipe

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// DoAll sends cmds in a round trip of their own, for callers that have a batch already. Commands
// for the same node keep their order. DoAll returns after all replies, with the error of the first
// command that failed. Each command has its own error.
func (p *Pipe) DoAll(ctx context.Context, cmds []redis.Cmder) error {
	if err := ctx.Err(); err != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	start := time.Now()
	pipeline := p.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipeline.Process(ctx, cmd) // only queues
	}
	_, err := pipeline.Exec(ctx)
	countReplies(ctx, cmds...)
	if p.opts.Observe != nil {
		lost := connectionError(err)
		for i := 0; i < len(cmds) && lost == nil; i++ {
			lost = connectionError(cmds[i].Err())
		}
		p.opts.Observe(time.Since(start), len(cmds), lost)
	}
	return err
}
