package session_test

import (
	"fmt"
	"testing"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/transport"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

// spoken is the dialect of all connections. TestMain runs all tests once per dialect.
var spoken = dialecttest.All()[0]

// speakJSON has a test use the native dialect, because it counts bytes or allocations.
func speakJSON(t testing.TB) { dialecttest.SpeakJSON(t, &spoken) }

// ping is the silence after which clients are pinged.
var ping = time.Hour

// pingEvery changes ping for a test.
func pingEvery(t testing.TB, d time.Duration) {
	before := ping
	t.Cleanup(func() { ping = before })
	ping = d
}

// encoding returns the encoding of a new WebSocket connection.
func encoding() *dialect.Encoding {
	o, err := spoken.New(ping).Open(dialect.Hello{Framing: spoken.Framing})
	if err != nil {
		panic(err)
	}
	return o.Encoding
}

// receive has a session receive a message, given as JSON, in the dialect of the test.
func receive(to transport.Receiver, format string, args ...any) {
	encoding().Decode(spoken.Request(fmt.Appendf(nil, format, args...)), to)
}

// connect returns the connect message of a WebSocket URL.
func connect(client, token string) []wire.Request {
	return []wire.Request{{Type: wire.TypeConnect, Client: client, Token: token}}
}
