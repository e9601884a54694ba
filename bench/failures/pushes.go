package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"switchboard/bench/progress"
	"switchboard/bench/swarm"
	"switchboard/bench/system"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/slots"
	"switchboard/registry"
)

// The load of the cases that measure pushes.
const (
	pushRate     = 500             // a second, over all connections
	pushConns    = 8               // connections of the load to each broker
	deadConns    = 4               // connections that push to a dead master
	deadInterval = time.Second / 4 // between two pushes on one of these
	beforeTime   = time.Minute     // before the failure
	deadTime     = 14 * time.Second
)

// The failures during which pushes are measured.
const (
	killedBroker = "a broker without clients is killed"
	hungMaster   = "one of three masters of a Cluster hangs"
	killedMaster = "one of three masters of a Cluster is dead"
)

// pushesResult is how long pushes take during a failure that does not concern them, until they are
// acknowledged.
type pushesResult struct {
	Failure   string  `json:"failure"`
	Clients   int     `json:"clients"`
	BeforeP50 float64 `json:"before_p50"` // ms, in the minute before
	BeforeP99 float64 `json:"before_p99"`
	P50       float64 `json:"p50"` // ms, in 14 s from the failure
	P99       float64 `json:"p99"`
	Failed    int     `json:"failed"` // pushes during the failure
	Ratio     float64 `json:"ratio"`  // of both p99
}

// pushLoad pushes at a constant rate. The time of a push counts from when it was due.
type pushLoad struct {
	channels []string
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	samples []pushSample
}

type pushSample struct {
	due    time.Time
	took   float64 // ms
	failed bool
}

// startLoad pushes to the channels through the brokers, in turn, until stop is called.
func startLoad(ctx context.Context, channels []string, brokers ...system.Running) *pushLoad {
	l := &pushLoad{channels: channels}
	ctx, l.stop = context.WithCancel(ctx)
	conns := pushConns * len(brokers)
	begun := time.Now()
	for k := range conns {
		l.running.Go(func() {
			p := redialing{to: brokers[k%len(brokers)]}
			defer p.close()
			for i := k; ; i += conns {
				due := begun.Add(time.Duration(i) * time.Second / pushRate)
				if await.Pause(ctx, time.Until(due)) != nil {
					return
				}
				err := p.push(ctx, channels[i%len(channels)], i)
				if ctx.Err() != nil {
					return
				}
				l.mu.Lock()
				l.samples = append(l.samples, pushSample{due, float64(time.Since(due)) / 1e6, err != nil})
				l.mu.Unlock()
			}
		})
	}
	return l
}

func (l *pushLoad) end() {
	l.stop()
	l.running.Wait()
}

// between returns the times of the pushes that were due in a window, in ms, and how many failed.
func (l *pushLoad) between(from, to time.Time) (took []float64, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.samples {
		if s.due.Before(from) || !s.due.Before(to) {
			continue
		}
		if took = append(took, s.took); s.failed {
			failed++
		}
	}
	return took, failed
}

// redialing is a publisher that connects again after an error.
type redialing struct {
	to        system.Running
	publisher system.Publisher
}

func (p *redialing) push(ctx context.Context, channel string, n int) (err error) {
	if p.publisher == nil {
		if p.publisher, err = p.to.Publisher(); err != nil {
			p.publisher = nil
			return err
		}
	}
	if err = p.publisher.Publish(ctx, channel, swarm.AppendPayload(nil, int64(n+1), 0)); err != nil {
		p.close()
	}
	return err
}

func (p *redialing) close() {
	if p.publisher != nil {
		_ = p.publisher.Close() // its error is that of the push
		p.publisher = nil
	}
}

// during measures the pushes before and during a failure.
func (o options) during(ctx context.Context, l *pushLoad, name string, n int, before time.Duration, fail func() error) (r pushesResult, err error) {
	begun := time.Now()
	if err := await.Pause(ctx, o.scaled(before)); err != nil {
		return r, err
	}
	failed := time.Now()
	if err := errors.Join(fail(), await.Pause(ctx, o.scaled(deadTime))); err != nil {
		return r, err
	}
	end := time.Now()
	if err := await.Pause(ctx, o.scaled(time.Second)); err != nil { // for the last of them
		return r, err
	}
	r = pushesResult{Failure: name, Clients: n}
	normal, _ := l.between(begun, failed)
	r.BeforeP50, r.BeforeP99 = quantile(normal, 0.5), quantile(normal, 0.99)
	took, failures := l.between(failed, end)
	r.P50, r.P99, r.Failed = quantile(took, 0.5), quantile(took, 0.99), failures
	if r.BeforeP99 > 0 {
		r.Ratio = r.P99 / r.BeforeP99
	}
	return r, nil
}

// pushesDuringKill measures pushes through two brokers while a third one is killed. All clients
// are connected to the first.
func (o options) pushesDuringKill(ctx context.Context, program, dir string, n int) (r pushesResult, err error) {
	redis, err := redistest.Launch(dir, "--maxmemory-policy", "noeviction")
	if err != nil {
		return r, err
	}
	defer redis.Kill()
	var brokers []system.Running
	for range 3 {
		b, err := startBroker(ctx, &system.Switchboard{Program: program}, dir, redis.URL(), n)
		if err != nil {
			return r, err
		}
		defer kill(b)
		brokers = append(brokers, b)
	}
	clients, err := connectClients(ctx, brokers[0].Addr(), n, false, discard)
	if err != nil {
		return r, err
	}
	defer clients.close()
	load := startLoad(ctx, channelNames(n), brokers[0], brokers[1])
	defer load.end()
	if err := await.Pause(ctx, o.scaled(settleTime)); err != nil {
		return r, err
	}
	r, err = o.during(ctx, load, killedBroker, n, beforeTime, func() error { kill(brokers[2]); return nil })
	if err == nil {
		err = clients.check()
	}
	return r, err
}

// channelNames returns the channels of n clients.
func channelNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = channelName(i)
	}
	return names
}

// pushesBesideMaster measures pushes to two masters of a Cluster while the third one hangs, and
// while it is dead. The broker is also asked to push to that one.
func (o options) pushesBesideMaster(ctx context.Context, program, dir string, n int) (list []pushesResult, err error) {
	cluster, err := redistest.LaunchCluster(filepath.Join(dir, "three"), 3, "--maxmemory-policy", "noeviction", "--cluster-require-full-coverage", "no")
	if err != nil {
		return nil, err
	}
	defer cluster.Kill()
	// The list of servers stays available, as with two of three masters.
	alive, _, err := cluster.Of(ctx, "{"+registry.ServersTag+"}")
	if err != nil {
		return nil, err
	}
	dead := slices.IndexFunc(cluster.Masters, func(s *redistest.Server) bool { return s != alive })
	holder, err := startBroker(ctx, &system.Switchboard{Program: program}, dir, cluster.URL(), n)
	if err != nil {
		return nil, err
	}
	defer kill(holder)
	clients, err := connectClients(ctx, holder.Addr(), n, false, discard)
	if err != nil {
		return nil, err
	}
	defer clients.close()
	var healthy, lost []string
	for _, channel := range channelNames(n) {
		if of := slots.Of(channel) * len(cluster.Masters) / slots.Count; of == dead {
			lost = append(lost, channel)
		} else {
			healthy = append(healthy, channel)
		}
	}
	load := startLoad(ctx, healthy, holder)
	defer load.end()
	defer pushInVain(ctx, holder, lost)()
	if err := await.Pause(ctx, o.scaled(settleTime)); err != nil {
		return nil, err
	}
	server := cluster.Masters[dead]
	hung, err := o.during(ctx, load, hungMaster, n, beforeTime/2, server.Pause)
	if err != nil {
		return nil, err
	}
	if err := server.Resume(); err != nil {
		return nil, err
	}
	if err := await.Pause(ctx, o.scaled(settleTime)); err != nil {
		return nil, err
	}
	killed, err := o.during(ctx, load, killedMaster, n, beforeTime/2, func() error { server.Kill(); return nil })
	if err == nil {
		err = clients.check()
	}
	return []pushesResult{hung, killed}, err
}

// pushInVain pushes to channels whose master may be dead, until the returned function is called.
func pushInVain(ctx context.Context, to system.Running, channels []string) (end func()) {
	if len(channels) == 0 {
		return func() {}
	}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for k := range deadConns {
		running.Go(func() {
			p := redialing{to: to}
			defer p.close()
			for i := k; await.Pause(ctx, deadInterval) == nil; i += deadConns {
				_ = p.push(ctx, channels[i%len(channels)], i) // expected to fail
			}
		})
	}
	return func() {
		stop()
		running.Wait()
	}
}

// pushCases measures all cases with pushes.
func (o options) pushCases(ctx context.Context, p *progress.Line, program, dir string) (list []pushesResult, err error) {
	n := slices.Max(o.clients)
	p.Stage("%d clients: pushes during the kill of a broker", n)
	killed, err := o.pushesDuringKill(ctx, program, dir, n)
	if err != nil {
		return nil, err
	}
	p.Stage("%d clients: pushes beside a dead master", n)
	beside, err := o.pushesBesideMaster(ctx, program, dir, n)
	return append([]pushesResult{killed}, beside...), err
}
