package redispipe

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// DoAll sends cmds by themselves, for who has gathered them already: in one round trip, in this order where they go to
// one node. It returns when all were answered, with the error of the first that failed; each keeps its
// own.
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
	if p.opts.Observe != nil {
		away := connectionError(err)
		for i := 0; i < len(cmds) && away == nil; i++ {
			away = connectionError(cmds[i].Err())
		}
		p.opts.Observe(time.Since(start), len(cmds), away)
	}
	return err
}
