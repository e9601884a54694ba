package session_test

import (
	"testing"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/transport"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

// spoken is the dialect of all connections. TestMain runs all tests with each dialect.
var spoken = dialecttest.All()[0]

// allDialects runs the tests once for each dialect.
type allDialects struct{ *testing.M }

func (m allDialects) Run() (code int) {
	for _, spoken = range dialecttest.All() {
		code |= m.M.Run()
	}
	return code
}

// speakJSON makes a test use the native dialect, because it counts bytes.
func speakJSON(t testing.TB) {
	before := spoken
	t.Cleanup(func() { spoken = before })
	spoken = dialecttest.All()[0]
}

// ping is the silence after which connections are pinged.
var ping = time.Hour

// pingEvery changes ping for a test.
func pingEvery(t testing.TB, d time.Duration) {
	before := ping
	t.Cleanup(func() { ping = before })
	ping = d
}

// speaker returns what a WebSocket speaks.
func speaker() *dialect.Speaker {
	o, err := spoken.New(ping).Open(dialect.Hello{Framing: spoken.Framing})
	if err != nil {
		panic(err)
	}
	return o.Speaker
}

// receive decodes a message, given as JSON, in the dialect spoken.
func receive(to transport.Receiver, text []byte) { speaker().Decode(spoken.Request(text), to) }

// connect is the connect message of a WebSocket URL.
func connect(client, token string) []wire.Request {
	return []wire.Request{{Type: wire.TypeConnect, Client: client, Token: token}}
}
