package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// trimChunk is the most messages that one run of the trim script drops, since it blocks Redis: a
// thousand take about 2 ms.
const trimChunk = 1000

// AppendChannel stores a message in the channel, drops the oldest messages beyond the channel's
// limits, and then reads the servers that have subscribers. If the push has a key that was seen
// within KeyTTL, AppendChannel stores nothing and returns the id of the first push. It does not
// check Data, nor does AppendClient: readers skip a message that is not compact JSON.
func (r *Redis) AppendChannel(ctx context.Context, push ChannelPush) (Appended, error) {
	o := r.AppendChannels(ctx, []ChannelPush{push})[0]
	return o.Value, o.Err
}

// AppendChannels stores each push like AppendChannel, in as few round trips as possible, in no
// particular order. A push that fails does not affect the others.
func (r *Redis) AppendChannels(ctx context.Context, pushes []ChannelPush) []Outcome[Appended] {
	targets := make([]redispipe.Target, len(pushes))
	for i := range pushes {
		targets[i] = r.appendTarget(&pushes[i])
	}
	out := make([]Outcome[Appended], len(pushes))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		o := &out[i]
		if o.Err = answer.Err; o.Err == nil || errors.Is(o.Err, ErrNotReplicated) {
			a, err := r.parseAppended(&pushes[i], answer.Value)
			if o.Value = a; err != nil {
				o.Err = err
			}
		}
		if o.Err != nil {
			o.Err = fmt.Errorf("append to channel %s: %w", pushes[i].Channel, o.Err)
		}
	}
	return out
}

func (r *Redis) appendTarget(push *ChannelPush) redispipe.Target {
	scripts, channel := r.scriptsFor(*push), push.Channel
	var keys []string
	var arg []byte
	script := scripts.message
	if push.Update != nil {
		script, keys = scripts.update, r.stateKeys(channel)
		p := make(packer, 0, 256)
		appendUpdate(&p, push.Update, push.Script.arg())
		arg = p[1:] // the script reads the elements of the array one by one, which is faster
	} else {
		keys = []string{r.keys.channel(channel), r.keys.channelMeta(channel), r.keys.channelServers(channel)}
		arg = push.Data
	}
	if push.Key != "" {
		keys = append(keys, r.keys.channelKey(channel, push.Key))
	}
	if push.Script != nil {
		keys = append(keys, push.Script.Keys...)
	}
	return redispipe.Target{Script: script.of(*push), Keys: keys, Args: []any{arg}}
}

func (r *Redis) parseAppended(push *ChannelPush, value any) (a Appended, err error) {
	if push.Update != nil {
		return r.parseUpdate(value)
	}
	text, _ := value.(string)
	reply := textReply{rest: text}
	key := reply.text()
	a.Prev, a.Duplicate = reply.integer(), reply.integer() == 1
	r.clock.update(reply.integer())
	a.Servers = reply.texts()
	if reply.err != nil {
		return Appended{}, reply.err
	}
	if err = a.parseKey(key); err == nil && a.ID == 0 && !a.Duplicate {
		err = ErrNewChannel
	}
	if err != nil {
		return Appended{}, err
	}
	if !a.Duplicate {
		a.Data = push.Data
	}
	return a, nil
}

// ReadChannel returns up to limit messages with ids above after, and about MaxPageBytes at most,
// but at least one message. With limit 0 it returns only the position, and Page.More reports
// whether there are messages above after.
func (r *Redis) ReadChannel(ctx context.Context, channel string, after int64, limit int) (Page, error) {
	o := r.ReadChannels(ctx, []ChannelRead{{Channel: channel, After: after, Limit: limit}})[0]
	return o.Value, o.Err
}

// ReadChannels makes each read like ReadChannel, in as few round trips as possible, in no
// particular order.
func (r *Redis) ReadChannels(ctx context.Context, reads []ChannelRead) []Outcome[Page] {
	targets := make([]redispipe.Target, len(reads))
	for i, c := range reads {
		targets[i] = r.readTarget(c, decimal(c.After))
	}
	out := make([]Outcome[Page], len(reads))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		c, o := reads[i], &out[i]
		if o.Value, o.Err = r.readPage(ctx, c, answer); o.Err != nil {
			*o = Outcome[Page]{Err: fmt.Errorf("read channel %s: %w", c.Channel, o.Err)}
		}
	}
	return out
}

func (r *Redis) readTarget(c ChannelRead, after string) redispipe.Target {
	return redispipe.Target{
		Script: r.read, Keys: []string{r.keys.channel(c.Channel), r.keys.channelMeta(c.Channel)},
		Args: []any{after, min(c.Limit, maxPage), cmp.Or(c.Bytes, MaxPageBytes), c.Reach},
	}
}

// readPage returns the page from the first reply of the script. If the reply has only malformed
// members, readPage reads the next ones, since a caller would take an empty page for the end.
func (r *Redis) readPage(ctx context.Context, c ChannelRead, first redispipe.Answer) (Page, error) {
	page, at, err := r.parseOrRetry(ctx, c, decimal(c.After), first)
	for err == nil && c.Limit > 0 && c.Reach == 0 && len(page.Messages) == 0 && page.More {
		var next Page
		next, at, err = r.parseOrRetry(ctx, c, at, redispipe.Answer{Value: ""})
		page.Messages, page.More = next.Messages, next.More
	}
	return page, err
}

// parseOrRetry parses a reply of the script. An empty reply means that the script did not read this
// channel, because the pages of other channels in the same run were too large. parseOrRetry then
// runs the script again. at is the score of the last member that the script checked.
func (r *Redis) parseOrRetry(ctx context.Context, c ChannelRead, after string, a redispipe.Answer) (page Page, at string, err error) {
	for a.Err == nil && a.Value == "" {
		a = r.pipe.EvalEach(ctx, r.readTarget(c, after))[0]
	}
	if a.Err != nil {
		return Page{}, "", a.Err
	}
	list, _ := a.Value.([]any)
	return parsePage(list)
}

// parsePage parses a reply of read_channel.
func parsePage(list []any) (page Page, at string, err error) {
	texts := make([]string, max(1, len(list)))
	for i := range list {
		texts[i], _ = list[i].(string)
	}
	header := textReply{rest: texts[0]}
	page = Page{
		Floor: header.integer(), Last: header.integer(), LastMarker: header.integer(), From: header.integer(),
		Complete: header.integer() == 1, More: header.integer() == 1, Clock: header.integer(),
	}
	at = header.text()
	page.Messages, _ = decode(texts[1:], decodeChannelMember)
	return page, at, header.err
}

// KeepPositions keeps the positions of channels for MetaTTL from now, if the store still knows
// them. It is for channels that have readers: when a position is lost, a reader's next page is not
// Complete.
func (r *Redis) KeepPositions(ctx context.Context, channels []string) error {
	cmds := make([]redis.Cmder, len(channels))
	for i, channel := range channels {
		cmds[i] = redis.NewBoolCmd(ctx, "pexpire", r.keys.channelMeta(channel), millis(r.opts.MetaTTL), "gt")
	}
	if err := r.pipe.DoAll(ctx, cmds); err != nil {
		return fmt.Errorf("keep the positions of %d channels: %w", len(channels), err)
	}
	return nil
}

// ChannelSize returns the number of messages that the channel holds.
func (r *Redis) ChannelSize(ctx context.Context, channel string) (int, error) {
	cmd := redis.NewIntCmd(ctx, "zcard", r.keys.channel(channel))
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return 0, fmt.Errorf("size of channel %s: %w", channel, err)
	}
	return int(cmd.Val()), nil
}

// TrimChannel removes old messages, for the janitor. If the newest message is older than maxAge it
// removes all messages, otherwise all but the newest maxCount. Both move the floor. It returns the
// number of messages that it removed, or with dryRun the number that it would remove.
func (r *Redis) TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error) {
	dry := 0
	if dryRun {
		dry = 1
	}
	keys := []string{r.keys.channel(channel), r.keys.channelMeta(channel)}
	for total := 0; ; {
		n, err := r.pipe.EvalInt(ctx, trimChannelScript, keys,
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
