package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"time"

	"switchboard/queue"
)

// Sweeps removes fields that are due from the states of channels. All fields up to Step are
// required.
type Sweeps struct {
	Self    func() string            // this server's id
	Live    func(server string) bool // reports whether a server holds a lease, as far as this server knows
	Servers func(ctx context.Context, channel string) ([]string, error)
	// Step runs steps of the kind queue.Sweep, and notifies the servers with subscribers.
	Step func(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended]
	// Jitter returns the delay of a sweep, which spreads the sweeps of fields that end at the same
	// time. Nil means a random delay of less than 50 ms.
	Jitter func() time.Duration
	// KeepCheck is how long after the first change of an empty state the store is asked when the
	// whole state ends. Later changes only move that time further away. Zero means a minute.
	KeepCheck time.Duration
	// Keep returns how long the state of a channel is kept after a change, as this server is
	// configured now. 0 means that it never ends. Nil means that this is not known.
	Keep func(channel string) time.Duration
}

// jitter calls Jitter.
func (w *Sweeps) jitter() time.Duration {
	if w.Jitter != nil {
		return w.Jitter()
	}
	return rand.N(sweepJitter)
}

const (
	// takeoverDelay is how long each server of a channel waits for the server before it in the
	// order.
	takeoverDelay = 500 * time.Millisecond
	// sweepJitter spreads the sweeps of fields that end at the same time.
	sweepJitter = 50 * time.Millisecond
	// keepCheck is the default of Sweeps.KeepCheck.
	keepCheck = time.Minute
	// sweepRetry is the delay after a sweep that failed, or whose changes did not reach this
	// server.
	sweepRetry = time.Second
)

// rank returns how many live servers are before this one in the order of the channel. The order is
// that of rendezvous hashing: channels have different first servers, and if a server ends, the
// order of the others stays.
func (w *Sweeps) rank(channel string, servers []string) int {
	self := w.Self()
	hash := func(server string) [sha256.Size]byte { return sha256.Sum256([]byte(server + "\x00" + channel)) }
	mine, rank := hash(self), 0
	for _, server := range servers {
		if other := hash(server); server != self && w.Live(server) && bytes.Compare(other[:], mine[:]) < 0 {
			rank++
		}
	}
	return rank
}

// limitKeepLocked makes keepUntil no later than the end that the change with the given id may have
// given the state. The configuration may have changed since the store was asked.
func (v *view) limitKeepLocked(id int64) {
	w := v.s.opts.Sweeps
	if w == nil || v.fields != nil && v.fields.Len() == 0 {
		return
	}
	now := v.s.opts.Hub.StoreTime()
	if v.keepUntil == 0 && v.fields != nil {
		v.keepUntil = now + cmp.Or(w.KeepCheck, keepCheck).Milliseconds()
	}
	if w.Keep == nil || v.keepUntil == 0 {
		return
	}
	if keep := w.Keep(v.channel.Name); keep > 0 {
		changedAt := min(queue.TimeOf(id).UnixMilli(), now) // ids may be ahead of the clock
		if end := changedAt + keep.Milliseconds(); v.keepUntil < 0 || end < v.keepUntil {
			v.keepUntil = end
		}
	}
}

// armLocked sets the timer for the next field that ends.
func (v *view) armLocked() {
	if w := v.s.opts.Sweeps; w != nil && v.due > 0 {
		v.armAtLocked(v.due + w.jitter().Milliseconds())
	}
}

// armAtLocked makes sweep run at a time on the store's clock, unless it runs earlier.
func (v *view) armAtLocked(at int64) {
	if v.stopped || v.firesAt > 0 && v.firesAt <= at {
		return
	}
	if v.timer != nil {
		v.timer.Stop()
	}
	v.firesAt = at
	// StoreTime is never later than the store's clock: when the timer fires, the field has ended.
	delay := time.Duration(max(at-v.s.opts.Hub.StoreTime(), 0)) * time.Millisecond
	v.timer = time.AfterFunc(delay, func() { v.s.opts.Pool.Go(v.sweep) })
}

// stop stops the timer for good.
func (v *view) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stopLocked()
}

func (v *view) stopLocked() {
	if v.stopped = true; v.timer != nil {
		v.timer.Stop()
	}
}

// sweep removes the fields that are due. If other servers come first in the order of the channel,
// it first waits takeoverDelay for each of them.
func (v *view) sweep() {
	due, ok := v.isDue()
	if !ok {
		return
	}
	ctx, w := v.s.deadlines.Context(), v.s.opts.Sweeps
	servers, err := w.Servers(ctx, v.channel.Name)
	if err != nil {
		v.retry(err)
		return
	}
	notBefore := due + int64(w.rank(v.channel.Name, servers))*takeoverDelay.Milliseconds()
	if notBefore > v.s.opts.Hub.StoreTime() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.armAtLocked(notBefore)
		return
	}
	o := w.Step(ctx, []queue.StateStep{{Channel: v.channel.Name, Kind: queue.Sweep}})[0]
	if o.Err != nil {
		v.retry(o.Err)
		return
	}
	if v.swept(o.Value) && o.Value.ID == 0 {
		v.channel.MarkDirty() // the janitor, which sends no hints, or another server has removed the fields
	}
}

// isDue reports whether a field is due. due is its end. If none is due, isDue sets the timer again.
func (v *view) isDue() (due int64, ok bool) {
	now := v.s.opts.Hub.StoreTime()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.firesAt = 0
	if v.stopped {
		return 0, false
	}
	if v.fields != nil {
		v.due = v.nextDueLocked()
	}
	v.limitDueLocked()
	if v.due == 0 || v.due > now {
		v.armLocked()
		return 0, false
	}
	return v.due, true
}

// swept sets the timer after a sweep with the outcome a. It reports whether the view still has a
// field that is due.
func (v *view) swept(a queue.Appended) (stillDue bool) {
	now := v.s.opts.Hub.StoreTime()
	v.mu.Lock()
	defer v.mu.Unlock()
	if a.KeepUntil != 0 {
		v.keepUntil = a.KeepUntil
	}
	if v.due = a.Due; v.fields != nil {
		v.due = v.nextDueLocked()
	}
	v.limitDueLocked()
	if v.due > 0 && v.due <= now { // the entry has not arrived, or the store's clock is behind
		v.armAtLocked(now + sweepRetry.Milliseconds())
		return true
	}
	v.armLocked()
	return false
}

// retry sets the timer after a failure.
func (v *view) retry(err error) {
	v.s.opts.Logger.Warn().Err(err).Str("channel", v.channel.Name).Msg("the fields that are due are not removed; another sweep follows")
	v.mu.Lock()
	defer v.mu.Unlock()
	v.armAtLocked(v.s.opts.Hub.StoreTime() + sweepRetry.Milliseconds())
}
