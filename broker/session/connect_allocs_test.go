package session_test

import (
	"fmt"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
)

// connectBench is a server to which clients reconnect, each with a subscribe right after connect.
type connectBench struct {
	*publishBench
	n int
}

// connect connects a client, subscribes it to a new channel, and closes the connection if leave is
// set. It returns after all that is done, also in the store.
func (b *connectBench) connect(leave bool) {
	b.n++
	sock := newSocket()
	sock.discard = true
	receiver := b.Accept(b.loop, sock, nil)
	id := fmt.Sprint("client-", b.n)
	receiver.Receive(wire.Request{Type: wire.TypeConnect, Ref: wire.RefOf(1), Client: id, Secret: "the secret of a client"}, 90)
	receiver.Receive(wire.Request{Type: wire.TypeSubscribe, Ref: wire.RefOf(2), Channel: id}, 60)
	b.finish()
	if leave {
		receiver.Closed()
		b.finish()
	}
}

// finish runs the pool and the loop until both have nothing to do.
func (b *connectBench) finish() {
	for b.pool.Wait(); b.runLoop != nil; b.pool.Wait() {
		run := b.runLoop
		b.runLoop = nil
		run()
	}
}

func connectCases(t testing.TB) []allocs.Case {
	limits := session.Limits{NewChannels: 1 << 30, UserRead: 1 << 30, MessageRate: 500, ByteRate: 2 << 20}
	of := func(name string, most int, leave bool) allocs.Case {
		b := &connectBench{publishBench: newPublishBench(t, session.Options{Limits: limits}, 0)}
		return allocs.Of(name, most, func() { b.connect(leave) })
	}
	// Each is a batch of its own here. In a herd, clients share about 20 of these.
	return []allocs.Case{
		of("a connect with a subscribe", 45, false),
		of("a connect with a subscribe, and its end", 51, true),
	}
}

func TestConnectAllocs(t *testing.T) { allocs.Test(t, connectCases(t)) }
func BenchmarkConnect(b *testing.B)  { allocs.Bench(b, connectCases(b)) }
