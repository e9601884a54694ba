package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// trimChunk is how many messages one run of the trim script drops, so that it does not
// hold Redis up: a thousand take about 2 ms.
const trimChunk = 1000

// AppendChannel implements [Queue].
func (r *Redis) AppendChannel(ctx context.Context, push ChannelPush) (Appended, error) {
	o := r.AppendChannels(ctx, []ChannelPush{push})[0]
	return o.Value, o.Err
}

// AppendChannels implements [Queue].
func (r *Redis) AppendChannels(ctx context.Context, pushes []ChannelPush) []Outcome[Appended] {
	targets := make([]redispipe.Target, len(pushes))
	for i, push := range pushes {
		keys := []string{r.keys.channel(push.Channel), r.keys.channelMeta(push.Channel), r.keys.channelServers(push.Channel)}
		if push.Key != "" {
			keys = append(keys, r.keys.channelKey(push.Channel, push.Key))
		}
		targets[i] = redispipe.Target{Group: group(r.channelGroups(push), push.Durable), Keys: keys, Args: []any{push.Data}}
	}
	return outcomes(r, ctx, targets, func(l *line) (a Appended, clock int64) {
		a.ID, a.Prev, a.Duplicate, clock = l.integer(), l.integer(), l.integer() == 1, l.integer()
		a.Servers = l.rest()
		return a, clock
	}, func(i int, err error) error { return fmt.Errorf("append to channel %s: %w", pushes[i].Channel, err) })
}

// ReadChannel implements [Queue].
func (r *Redis) ReadChannel(ctx context.Context, channel string, after int64, limit int) (Page, error) {
	page, at, err := r.readChannel(ctx, channel, decimal(after), limit)
	// Nothing but malformed members so far: to the caller an empty page would be the end.
	for err == nil && limit > 0 && len(page.Messages) == 0 && page.More {
		var next Page
		next, at, err = r.readChannel(ctx, channel, at, limit)
		page.Messages, page.More = next.Messages, next.More
	}
	if err != nil {
		return Page{}, fmt.Errorf("read channel %s: %w", channel, err)
	}
	return page, nil
}

// readChannel is one answer of the script; at is the score up to which it looked.
func (r *Redis) readChannel(ctx context.Context, channel, after string, limit int) (page Page, at string, err error) {
	target := redispipe.Target{
		Group: r.read, Keys: []string{r.keys.channel(channel), r.keys.channelMeta(channel)}, Args: []any{after, min(limit, maxPage)},
	}
	for {
		answers, err := r.pipe.EvalEach(ctx, target)
		if err == nil {
			err = answers[0].Err
		}
		if err != nil {
			return Page{}, "", err
		}
		if answers[0].Value == "" {
			continue // others in the same run had so much that this one was left out
		}
		list, _ := answers[0].Value.([]any)
		return pageOf(list)
	}
}

// pageOf takes an answer of read_channel apart.
func pageOf(list []any) (page Page, at string, err error) {
	texts := make([]string, max(1, len(list)))
	for i := range list {
		texts[i], _ = list[i].(string)
	}
	l := line{left: texts[0]}
	page = Page{Floor: l.integer(), Last: l.integer(), Hole: l.integer(), From: l.integer(), Complete: l.integer() == 1, More: l.integer() == 1}
	at = l.text()
	page.Messages, _ = decode(texts[1:])
	return page, at, l.err
}

// ChannelSize implements [Queue].
func (r *Redis) ChannelSize(ctx context.Context, channel string) (int, error) {
	cmd := redis.NewIntCmd(ctx, "zcard", r.keys.channel(channel))
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return 0, fmt.Errorf("size of channel %s: %w", channel, err)
	}
	return int(cmd.Val()), nil
}

// TrimChannel implements [Queue].
func (r *Redis) TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error) {
	dry := 0
	if dryRun {
		dry = 1
	}
	keys := []string{r.keys.channel(channel), r.keys.channelMeta(channel)}
	for total := 0; ; {
		n, err := r.evalInt(ctx, trimChannelScript, keys,
			maxAge.Milliseconds(), maxCount, trimChunk, millis(r.opts.MetaTTL), dry)
		if err != nil {
			return total, fmt.Errorf("trim channel %s: %w", channel, err)
		}
		total += int(n)
		if dryRun || n < trimChunk {
			return total, nil
		}
	}
}
