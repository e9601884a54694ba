package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/bench/progress"
	"switchboard/internal/await"
)

// The times of restarts.
const (
	fleetStart    = 20 * time.Second       // in which all brokers start
	reconnectTime = 500 * time.Millisecond // from the end of a broker until its clients come back
	restartWindow = 7 * time.Second        // from the begin of a restart
	quietTime     = 6 * time.Second        // without a comparison, after all links have begun
	maxQuietTime  = time.Minute
)

// restartResult is what restarts of brokers cost the other brokers. The clients of a restarted
// broker come back to it. To know what the restart and these clients cost themselves, the same
// number of clients restarts with a broker that has a Redis of its own and no other brokers: these
// commands are subtracted. So are those of the beats, which are counted in a quiet window before
// each restart.
type restartResult struct {
	Brokers     int     `json:"brokers"`
	Clients     int     `json:"clients"`  // of all brokers
	Restarts    int     `json:"restarts"` // of brokers, one after the other
	Readings    int64   `json:"readings"` // of everything, by the other brokers
	Comparisons int64   `json:"comparisons"`
	PerBroker   float64 `json:"per_broker"`  // commands for one other broker and restart
	MostBroker  float64 `json:"most_broker"` // in the restart with the most
	PerClient   float64 `json:"per_client"`  // commands of a restart without other brokers, for each client
	Beats       float64 `json:"beats"`       // commands a second of all brokers in the quiet windows
}

// restarts restarts brokers of a fleet.
func (o options) restarts(ctx context.Context, p *progress.Line, dir string) (r restartResult, err error) {
	r = restartResult{Brokers: o.fleetBrokers, Clients: o.fleetClients, Restarts: min(o.restartCount, o.fleetBrokers)}
	p.Stage("starting %d brokers and %d clients", r.Brokers, r.Clients)
	all, err := o.startFleet(ctx, filepath.Join(dir, "all"), r.Brokers)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, all.end()) }()
	alone, err := o.startFleet(ctx, filepath.Join(dir, "alone"), 1)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, alone.end()) }()
	if err := all.awaitQuiet(ctx); err != nil {
		return r, err
	}
	others := float64(max(1, r.Brokers-1))
	var sum, beats, client int64
	for k := range r.Restarts {
		p.Stage("%d brokers: restart %d of %d", r.Brokers, k+1, r.Restarts)
		quiet, aloneRestart, err := together(ctx, all, noRestart, alone, 0)
		if err != nil {
			return r, err
		}
		restart, aloneQuiet, err := all.counted(ctx, k*r.Brokers/r.Restarts, alone, &r)
		if err != nil {
			return r, err
		}
		one := restart - quiet - (aloneRestart - aloneQuiet)
		sum, beats, client = sum+one, beats+quiet, client+aloneRestart-aloneQuiet
		r.MostBroker = max(r.MostBroker, float64(one)/others)
	}
	n := float64(r.Restarts)
	r.PerBroker, r.PerClient = float64(sum)/n/others, float64(client)/n/float64(all.each)
	r.Beats = float64(beats) / n / o.scaled(restartWindow).Seconds()
	return r, nil
}

// restartCase is a fleet with its Redis, whose brokers restart.
type restartCase struct {
	*fleet
	stats    *redisStats
	endRedis func()
	each     int // clients of a broker
}

// startFleet starts n brokers and their clients.
func (o options) startFleet(ctx context.Context, dir string, n int) (c *restartCase, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	server, stats, endRedis, err := launchRedis(dir)
	if err != nil {
		return nil, err
	}
	c = &restartCase{fleet: newFleet(o, server.Addr), stats: stats, endRedis: endRedis, each: o.fleetClients / o.fleetBrokers}
	err = c.start(ctx, n, o.scaled(fleetStart)/time.Duration(o.fleetBrokers))
	for i := 0; err == nil && i < n; i++ {
		err = c.connect(ctx, i, i*c.each, c.each)
	}
	if err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// end ends the brokers and the Redis.
func (c *restartCase) end() error {
	err := c.close()
	c.endRedis()
	return err
}

// noRestart is the number of no broker.
const noRestart = -1

// together counts the commands of two fleets in the same window, in which a broker of each
// restarts, or none.
func together(ctx context.Context, all *restartCase, i int, alone *restartCase, k int) (ofAll, ofAlone int64, err error) {
	var group errgroup.Group
	group.Go(func() (err error) {
		ofAll, err = all.window(ctx, i)
		return err
	})
	group.Go(func() (err error) {
		ofAlone, err = alone.window(ctx, k)
		return err
	})
	err = group.Wait()
	return ofAll, ofAlone, err
}

// counted restarts broker i, and adds what the other brokers read and compare to r.
func (c *restartCase) counted(ctx context.Context, i int, alone *restartCase, r *restartResult) (restart, aloneQuiet int64, err error) {
	type count struct {
		name   string
		into   *int64
		before int64
	}
	counts := []*count{{name: "switchboard_rebinds_total", into: &r.Readings}, {name: "switchboard_sweeps_total", into: &r.Comparisons}}
	for _, n := range counts {
		if n.before, err = c.counters(n.name, i); err != nil {
			return 0, 0, err
		}
	}
	if restart, aloneQuiet, err = together(ctx, c, i, alone, noRestart); err != nil {
		return 0, 0, err
	}
	for _, n := range counts {
		after, err := c.counters(n.name, i)
		if err != nil {
			return 0, 0, err
		}
		*n.into += after - n.before
	}
	return restart, aloneQuiet, nil
}

// window counts the commands in a window in which broker i restarts and its clients come back, or
// in which nothing happens.
func (c *restartCase) window(ctx context.Context, i int) (commands int64, err error) {
	end := time.Now().Add(c.scaled(restartWindow))
	return c.stats.during(ctx, func() error {
		if i != noRestart {
			if err := errors.Join(c.restartBroker(ctx, i), await.Pause(ctx, c.scaled(reconnectTime))); err != nil {
				return err
			}
			if err := c.connect(ctx, i, i*c.each, c.each); err != nil {
				return err
			}
			if time.Now().After(end) {
				return fmt.Errorf("%d clients did not come back within %v", c.each, c.scaled(restartWindow))
			}
		}
		return await.Pause(ctx, time.Until(end))
	})
}

// restartBroker ends a broker and starts another one at its address.
func (c *restartCase) restartBroker(ctx context.Context, i int) error {
	addr := c.brokers[i].addr(ctx)
	if err := c.brokers[i].end(); err != nil {
		return err
	}
	c.disconnect(i)
	b, err := c.startOne(ctx, addr)
	if err == nil {
		c.brokers[i] = b
	}
	return err
}

// awaitQuiet waits until no broker has compared anything for some seconds: then all links have
// begun.
func (f *fleet) awaitQuiet(ctx context.Context) error {
	last, since := int64(-1), time.Now()
	for deadline := time.Now().Add(maxQuietTime); time.Now().Before(deadline); {
		sum, err := f.counters("switchboard_sweeps_total", -1)
		if err != nil {
			return err
		}
		if sum != last {
			last, since = sum, time.Now()
		} else if time.Since(since) > f.scaled(quietTime) {
			return nil
		}
		if err := await.Pause(ctx, f.scaled(quietTime)/20); err != nil {
			return err
		}
	}
	return errors.New("the brokers go on comparing with the store: this machine is too slow for them")
}
