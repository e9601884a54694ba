package client

import (
	"context"
	"fmt"
	"time"

	"switchboard/internal/wire"
)

// Loaded is the result of SubscribeOptions.Load.
type Loaded struct {
	// After is a position of the channel that was read before the data, or together with it: the data
	// has all that was published up to there. A pointer to 0 is the oldest message that the channel
	// keeps. Zero (nil) means the position at which Load was called.
	After *int64
	// Apply shows the data. It is called like the callbacks of Options: after the messages before, and
	// before those that are not in the data. It is not called if the result is too old. Zero means
	// that there is nothing to call.
	Apply func()
}

const (
	// loadTimeout is how long the context of Load lasts.
	loadTimeout = 30 * time.Second
	// heldLimit is how many bytes of messages of a channel wait for Load.
	heldLimit = softLimit
)

// loader calls Load of one subscription, after the subscription has begun: nothing is published
// between the two that is in neither. Client.mu guards it.
type loader struct {
	due      bool // the next `subscribed` starts a run
	run      *loadRun
	failed   *loadRun // its retry waits for a delay
	loadedTo int64    // the messages up to it are in the data
	retry    backoff
}

// loadRun is one call of Load. Client.mu guards it.
type loadRun struct {
	from   int64 // the messages above it wait
	oldest int64 // the messages up to it are gone; 0 if none are
	cancel context.CancelFunc
	held   []item
	bytes  int // of held
	// parked says that too much waited: the subscription has ended until Load returns.
	parked bool
}

// parked reports whether sub must not be subscribed before its Load returns.
func (sub *subscription) parked() bool {
	return sub.loader != nil && sub.loader.run != nil && sub.loader.run.parked
}

// setLoaderLocked follows a change of the options of sub. restart says that its messages arrive
// again.
func (c *Client) setLoaderLocked(sub *subscription, restart bool) {
	l := sub.loader
	switch {
	case sub.opts.Load != nil && l == nil:
		sub.loader = &loader{due: true, retry: newBackoff(c.opts, 1)}
	case sub.opts.Load == nil && l != nil:
		sub.loader = nil
		if run := l.stop(); run != nil && !restart {
			for _, it := range run.held {
				c.inbox.put(it)
			}
		}
	}
}

// stop makes the loader ignore its run, whose context ends. It returns the run, nil for none.
func (l *loader) stop() *loadRun {
	run := l.run
	l.run, l.failed = nil, nil
	if run != nil {
		run.cancel()
	}
	return run
}

// putLocked queues an item of sub for the callbacks, after the data.
func (c *Client) putLocked(sub *subscription, it item) {
	if l := sub.loader; l != nil {
		if l.run != nil {
			c.holdLocked(sub, it)
			return
		}
		it.loaded = it.do == nil && it.message.ID <= l.loadedTo
		if it.loaded && it.view == nil {
			return
		}
	}
	c.inbox.put(it)
}

// holdLocked makes an item wait for Load. Above heldLimit the subscription ends. It begins again at
// the position that Load returns, so that other channels need not wait.
func (c *Client) holdLocked(sub *subscription, it item) {
	run := sub.loader.run
	if run.bytes += it.size + itemOverhead; run.bytes <= heldLimit {
		run.held = append(run.held, it)
		return
	}
	run.held, run.bytes, run.parked = nil, 0, true
	c.leaveLocked(sub, position{id: run.from, known: true})
}

// leaveLocked ends the subscription in the broker. The next one starts at pos.
func (c *Client) leaveLocked(sub *subscription, pos position) {
	if c.session != nil && (sub.active || sub.pending != nil) {
		c.submitLocked(wire.Request{Type: wire.TypeUnsubscribe, Channel: sub.channel})
	}
	sub.pos, sub.active, sub.pending = pos, false, nil
	sub.missedLocked()
}

// loadIfDueLocked starts Load after `subscribed`.
func (c *Client) loadIfDueLocked(sub *subscription) {
	if l := sub.loader; l != nil && l.due {
		c.startLoadLocked(sub, &loadRun{from: sub.pos.id})
	}
}

// loadAfterGapLocked starts Load again, and ends a running one: what it returns may be too old.
// The messages that wait for that one continue to wait, unless their ids are no longer valid.
func (c *Client) loadAfterGapLocked(g Gap) {
	sub := c.subs[g.Channel]
	if sub == nil || sub.loader == nil {
		return
	}
	run := &loadRun{from: sub.pos.id, oldest: g.ID}
	if before := sub.loader.stop(); before != nil && g.ID >= g.After {
		run.from, run.held, run.bytes = max(before.from, g.ID), before.held, before.bytes
	}
	c.startLoadLocked(sub, run)
}

func (c *Client) startLoadLocked(sub *subscription, run *loadRun) {
	if c.stopped != nil {
		return
	}
	l := sub.loader
	l.due, l.failed, l.run = false, nil, run
	var ctx context.Context
	ctx, run.cancel = context.WithCancel(c.loadCtx)
	previous, done := c.loading[sub.channel], make(chan struct{})
	c.loading[sub.channel] = done
	c.loads.Go(func() {
		defer run.cancel()
		if previous != nil {
			<-previous
		}
		c.runLoad(ctx, sub, run)
		c.loadReturned(sub.channel, done)
	})
}

// loadReturned allows the next call of Load for the channel.
func (c *Client) loadReturned(channel string, done chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loading[channel] == done {
		delete(c.loading, channel)
	}
	close(done)
}

// runLoad calls Load, and continues the subscription with its result.
func (c *Client) runLoad(ctx context.Context, sub *subscription, run *loadRun) {
	c.mu.Lock()
	load := sub.opts.Load
	current := sub.loader != nil && sub.loader.run == run
	c.mu.Unlock()
	if !current {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, loadTimeout)
	loaded, err := load(bounded)
	cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub.loader == nil || sub.loader.run != run || c.loadCtx.Err() != nil {
		return
	}
	sub.loader.run = nil
	if err == nil {
		err = run.check(loaded.After)
	}
	if err != nil {
		c.loadFailedLocked(sub, run, err)
		return
	}
	c.loadedLocked(sub, run, loaded)
}

// check returns an error for a position that cannot be that of the data.
func (run *loadRun) check(after *int64) error {
	switch {
	case after == nil:
	case *after < 0:
		return fmt.Errorf("after: %d is no position", *after)
	case *after > 0 && *after < run.oldest:
		return fmt.Errorf("load: the position %d is before the oldest message, %d", *after, run.oldest)
	}
	return nil
}

// loadedLocked queues Apply, and then the messages that are not in the data.
func (c *Client) loadedLocked(sub *subscription, run *loadRun, loaded Loaded) {
	l := sub.loader
	l.retry.reset()
	l.loadedTo = run.from
	if loaded.After != nil {
		l.loadedTo = *loaded.After
	}
	if loaded.Apply != nil {
		c.inbox.put(item{message: Message{Channel: sub.channel}, do: loaded.Apply})
	}
	if start := max(l.loadedTo, run.oldest); start < run.from || run.parked {
		c.leaveLocked(sub, position{id: start, known: true})
		c.subscribeAgainLocked(sub)
		return
	}
	for _, it := range run.held {
		c.putLocked(sub, it)
	}
}

// loadFailedLocked ends the subscription, so that nothing waits. After a delay it begins again, and
// calls Load.
func (c *Client) loadFailedLocked(sub *subscription, run *loadRun, err error) {
	l := sub.loader
	l.due, l.failed = true, run
	c.leaveLocked(sub, position{})
	wait := l.retry.next()
	c.opts.Logger.Warn().Err(err).Str("channel", sub.channel).Dur("retry_in", wait).Msg("load failed")
	if c.opts.OnLoadError != nil {
		c.inbox.put(item{message: Message{Channel: sub.channel}, do: func() { c.opts.OnLoadError(sub.channel, err) }})
	}
	c.loads.Go(func() {
		if !pause(c.loadCtx, wait) {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.failed == run && !sub.active && sub.pending == nil {
			c.subscribeAgainLocked(sub)
		}
	})
}

// subscribeAgainLocked subscribes at the position of sub, for no caller. Without a connection, the
// next one does it.
func (c *Client) subscribeAgainLocked(sub *subscription) {
	if c.session != nil {
		c.submitSubscribeLocked(sub).noCaller = true
	}
}
