package session

import (
	"switchboard/broker/work"
	"switchboard/internal/meter"
)

// chargeRead charges the connection for n bytes that a message of the client made the store read.
// Each KiB counts as a message, except those for which the message has paid with its weight. It
// takes nothing for what one second allows if the session has no rateUse, as needsNoRateUse does:
// an idle subscriber would otherwise keep a rateUse until it is checked next, which is 128 bytes
// more for each connection.
func (s *Session) chargeRead(n, paid int) {
	if n = kib(n) - paid; s.rateUse() != nil || n > s.m.opts.Limits.MessageRate {
		s.chargeMessages(n)
	}
}

// call runs job in the pool and then finish with its result on the loop. Until then further
// messages wait. finish is also called if the session has closed meanwhile. The connection and the
// sender are charged for what the job reads from the store in contexts with the Meter that it gets.
// paid is the weight of the message, see chargeRead.
func call[T any](s *Session, paid int, job func(read *meter.Meter) (T, error), finish func(T, error)) {
	callIn(s.m.opts.Pool, s, paid, job, finish)
}

// callIn is call with a given pool.
func callIn[T any](pool *work.Pool, s *Session, paid int, job func(read *meter.Meter) (T, error), finish func(T, error)) {
	read, by, senders := new(meter.Meter), s.sender(), s.m.senders
	callUncharged(pool, s, func() (T, error) {
		result, err := job(read)
		senders.TakeRead(by, read.Read())
		return result, err
	}, func(result T, err error) {
		s.chargeRead(read.Bytes(), paid)
		finish(result, err)
	})
}

// callUncharged is callIn for a job that reads no more than the message has paid for.
func callUncharged[T any](pool *work.Pool, s *Session, job func() (T, error), finish func(T, error)) {
	s.busy = true
	pool.Go(func() {
		result, err := job()
		s.shard.loop.Post(func() {
			s.busy = false
			s.corked(func() {
				finish(result, err)
				s.handleWaiting()
			})
		})
	})
}
