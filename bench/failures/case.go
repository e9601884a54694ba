package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/bench/progress"
	"switchboard/bench/swarm"
	"switchboard/bench/system"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
)

// The times of a case.
const (
	settleTime = 12 * time.Second // until a broker that started or ended concerns no other one
	killWindow = 14 * time.Second // the lease of a killed broker ends in this time
	stepWindow = 8 * time.Second  // after a start and after SIGTERM
	pushTime   = 5 * time.Second  // pushes before the kill
	// positionsTime is from the subscribes to channels with messages until the broker has refreshed
	// their positions, once, which is a command for each channel.
	positionsTime = 62 * time.Second
	lastWindow    = 6 * time.Second // after a dead broker is removed from the list of servers
	frozenTime    = 5 * time.Second // of Redis
)

// testCase is one case: a Redis, a broker with clients, and a broker that comes and goes.
type testCase struct {
	options
	progress     *progress.Line
	program, dir string
	result       result

	redis   *redistest.Server
	stats   *redisStats
	holder  system.Running // the broker with the clients
	clients *clients
}

func (c *testCase) run(ctx context.Context) (err error) {
	c.stage("starting Redis, the broker and the clients")
	var end func()
	if c.redis, c.stats, end, err = launchRedis(c.dir); err != nil {
		return err
	}
	defer end()
	if c.holder, err = c.startBroker(ctx); err != nil {
		return err
	}
	defer kill(c.holder)
	if c.result.Watching {
		// Before the clients connect: a minute after the first change that subscribers see, their broker
		// asks when the state ends, which is four commands for each channel.
		if err := c.setFields(ctx); err != nil {
			return err
		}
	}
	if c.clients, err = connectClients(ctx, c.holder.Addr(), c.result.Clients, c.result.Watching, discard); err != nil {
		return err
	}
	defer c.clients.close()
	if c.result.Watching {
		if err := c.wait(ctx, positionsTime); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{c.quietAndKill, c.startAndEnd, c.killPusher, c.freeze} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return c.clients.check()
}

func (c *testCase) stage(format string, args ...any) {
	c.progress.Stage("%d clients%s: %s", c.result.Clients, c.result.suffix(), fmt.Sprintf(format, args...))
}

// quietClients has clients ping once an hour, and bindings renewed every four, so that the windows
// have only the commands of failures. A renewal of a client that watches is eight commands, and
// renewals come in groups up to a minute apart: a window would have one group or none.
var quietClients = []string{"SWITCHBOARD_TIMES_PING=1h", "SWITCHBOARD_TIMES_CONNECT=2m", "SWITCHBOARD_TIMES_REFRESH=4h"}

// startBroker starts a broker.
func (c *testCase) startBroker(ctx context.Context) (system.Running, error) {
	return startBroker(ctx, &system.Switchboard{Program: c.program, State: c.result.Watching}, c.dir, c.redis.URL(), c.result.Clients)
}

// startBroker starts a broker on a Redis for n quiet clients.
func startBroker(ctx context.Context, b *system.Switchboard, dir, redisURL string, n int) (system.Running, error) {
	b.Env = slices.Concat(quietClients, b.Env, []string{"SWITCHBOARD_REDIS=" + redisURL})
	return b.Start(ctx, system.Setup{Dir: dir, History: true, Clients: n, Transport: "tcp"})
}

// setFields sets a field of each channel.
func (c *testCase) setFields(ctx context.Context) (err error) {
	publisher, err := c.holder.Publisher()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, publisher.Close()) }()
	for i := range c.result.Clients {
		if err := publisher.Publish(ctx, channelName(i), swarm.AppendPayload(nil, 1, 0)); err != nil {
			return err
		}
	}
	return nil
}

// startOther starts a broker without clients, and waits until it concerns no other one.
func (c *testCase) startOther(ctx context.Context) (system.Running, error) {
	other, err := c.startBroker(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.wait(ctx, settleTime); err != nil {
		kill(other)
		return nil, err
	}
	return other, nil
}

// quietAndKill counts the commands of two brokers to which nothing happens, those after the kill of
// the one that stored nothing, and those after it is removed from the list of servers.
func (c *testCase) quietAndKill(ctx context.Context) error {
	other, err := c.startOther(ctx)
	if err != nil {
		return err
	}
	defer kill(other)
	c.stage("quiet")
	if err := c.count(ctx, &c.result.Quiet, killWindow, func() error { return nil }); err != nil {
		return err
	}
	c.stage("kill")
	if err := c.count(ctx, &c.result.Kill, killWindow, func() error { kill(other); return nil }); err != nil {
		return err
	}
	return c.count(ctx, &c.result.LastCheck, lastWindow, func() error { return c.stats.forgetDead(ctx) })
}

// startAndEnd counts the commands after a start and after a planned end.
func (c *testCase) startAndEnd(ctx context.Context) error {
	var other system.Running
	c.stage("start")
	if err := c.count(ctx, &c.result.Start, stepWindow, func() (err error) {
		other, err = c.startBroker(ctx)
		return err
	}); err != nil {
		return err
	}
	defer kill(other)
	if err := c.wait(ctx, settleTime/2); err != nil {
		return err
	}
	c.stage("planned end")
	return c.count(ctx, &c.result.End, stepWindow, other.Stop)
}

// killPusher counts the commands after the kill of a broker that stores half of the pushes. The
// commands of the other half are counted a second time, later, and subtracted for as many pushes:
// after the kill the machine has more time, and a load that is late catches up.
func (c *testCase) killPusher(ctx context.Context) error {
	other, err := c.startOther(ctx)
	if err != nil {
		return err
	}
	defer kill(other)
	c.stage("kill during pushes")
	pushing, stop := context.WithCancel(ctx)
	defer stop()
	var pushers errgroup.Group
	var killed atomic.Bool
	var pushes atomic.Int64
	pushers.Go(func() error { return c.push(pushing, c.holder, &pushes) })
	pushers.Go(func() error {
		if err := c.push(pushing, other, new(atomic.Int64)); err != nil && !killed.Load() {
			return err
		}
		return nil
	})
	window := func(do func()) (commands, pushed int64, err error) {
		before := pushes.Load()
		err = c.count(ctx, &commands, killWindow, func() error { do(); return nil })
		return commands, pushes.Load() - before, err
	}
	measure := func() error {
		if err := c.wait(ctx, pushTime); err != nil {
			return err
		}
		after, pushedAfter, err := window(func() { killed.Store(true); kill(other) })
		if err != nil {
			return err
		}
		if err := errors.Join(c.stats.forgetDead(ctx), c.wait(ctx, lastWindow)); err != nil {
			return err
		}
		later, pushedLater, err := window(func() {})
		c.result.KillPusher = after - int64(float64(later)*float64(pushedAfter)/float64(max(1, pushedLater)))
		return err
	}
	err = measure()
	stop()
	return errors.Join(err, pushers.Wait(), c.wait(ctx, settleTime/4))
}

// push pushes half of the pushes to the channels of the clients, until ctx ends. It counts them.
func (c *testCase) push(ctx context.Context, to system.Running, count *atomic.Int64) error {
	publisher, err := to.Publisher()
	if err != nil {
		return err
	}
	defer publisher.Close()
	begun := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(max(1, c.pushes/2)))
		if await.Pause(ctx, time.Until(due)) != nil {
			return nil
		}
		err := publisher.Publish(ctx, channelName(i%c.result.Clients), swarm.AppendPayload(nil, int64(i+2), 0))
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("push: %w", err)
		}
		count.Add(1)
	}
	return nil
}

// freeze stops Redis for some seconds, and counts the readings of everything and the commands after
// that.
func (c *testCase) freeze(ctx context.Context) error {
	c.stage("Redis stops for %v", frozenTime)
	before, err := readings(ctx, c.holder)
	if err != nil {
		return err
	}
	if err := c.count(ctx, &c.result.Frozen, killWindow, func() error {
		if err := c.redis.Pause(); err != nil {
			return err
		}
		return errors.Join(c.wait(ctx, frozenTime), c.redis.Resume())
	}); err != nil {
		return err
	}
	after, err := readings(ctx, c.holder)
	c.result.FrozenReadings = after - before
	return err
}

// count stores the number of commands that Redis executes from the begin of do until a window after
// its end.
func (c *testCase) count(ctx context.Context, into *int64, window time.Duration, do func() error) error {
	n, err := c.stats.during(ctx, func() error { return errors.Join(do(), c.wait(ctx, window)) })
	*into = n
	return err
}

func (c *testCase) wait(ctx context.Context, d time.Duration) error {
	return await.Pause(ctx, c.scaled(d))
}

// kill kills a broker. It does nothing if it has ended.
func kill(r system.Running) { r.(system.Killable).Kill() }
