package janitor

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"switchboard/janitor/heartbeat"
)

const (
	// reportEvery is the interval of the reports of a janitor that runs.
	reportEvery = 5 * time.Second
	// reportTimeout bounds one report.
	reportTimeout = 5 * time.Second
)

// Heartbeats records which janitors run. [heartbeat.Redis] implements it.
type Heartbeats interface {
	Report(ctx context.Context, j heartbeat.Janitor) error
	Remove(ctx context.Context, id string) error
}

// progress has the rounds of each kind that runs.
type progress struct {
	started time.Time

	mu     sync.Mutex // guards the field below
	rounds map[string]roundProgress
}

// roundProgress describes the rounds of one kind.
type roundProgress struct {
	every     time.Duration
	begun     time.Time // when this janitor began to make them
	completed time.Time // of the last complete round; zero for none
	took      time.Duration
	failed    int // incomplete rounds since
}

// repeats records that rounds of a kind run at an interval.
func (p *progress) repeats(kind string, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rounds[kind] = roundProgress{every: every, begun: time.Now()}
}

// forget records that another janitor makes the rounds of a kind.
func (p *progress) forget(kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rounds, kind)
}

// ended records the end of a round.
func (p *progress) ended(kind string, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rounds[kind]
	if err != nil {
		r.failed++
	} else {
		r.completed, r.took, r.failed = time.Now(), took, 0
	}
	p.rounds[kind] = r
}

// describe returns the description of this janitor.
func (j *Janitor) describe(once bool) heartbeat.Janitor {
	p := &j.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	d := heartbeat.Janitor{
		ID: j.opts.ID, Version: j.opts.Version, StartedAt: p.started.UnixMilli(), Webhooks: j.opts.Events != nil, Once: once,
		Rounds: make(map[string]heartbeat.Round, len(p.rounds)),
	}
	for kind, r := range p.rounds {
		since := r.completed
		if since.IsZero() {
			since = p.started
		}
		if r.begun.After(since) {
			since = r.begun
		}
		d.Rounds[kind] = heartbeat.Round{
			Every: r.every.Milliseconds(), Idle: time.Since(since).Milliseconds(), Took: r.took.Milliseconds(), Failed: r.failed,
		}
	}
	return d
}

// report records this janitor until ctx ends, and then removes the record.
func (j *Janitor) report(ctx context.Context) error {
	if j.opts.Heartbeats == nil || j.opts.DryRun {
		return nil
	}
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		j.reportOnce(ctx, false)
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
			defer cancel()
			if err := j.opts.Heartbeats.Remove(end, j.opts.ID); err != nil {
				j.opts.Logger.Warn().Err(err).Msg("janitor: its record stays for a day")
			}
			return nil
		case <-ticker.C:
		}
	}
}

// reportOnce records this janitor. A failure is only logged: the rounds are more important.
func (j *Janitor) reportOnce(ctx context.Context, once bool) {
	if j.opts.Heartbeats == nil || j.opts.DryRun {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	if err := j.opts.Heartbeats.Report(ctx, j.describe(once)); err != nil && ctx.Err() == nil {
		j.limited.Warn("janitor: it cannot report that it runs", func(e *zerolog.Event) { e.Err(err) })
	}
}
