package room_test

import (
	"slices"
	"testing"

	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/room"
)

// TestRefusedJoin checks that a client that joins and subscribes at once follows the rooms that it
// is in, and, after a refusal, no others.
func TestRefusedJoin(t *testing.T) {
	each(t, 2, func(w *world) {
		w.make(room.CreateRequest{ID: "full", Mode: "battle", Capacity: 1})
		w.make(room.CreateRequest{ID: "den", Mode: "battle", Visibility: room.Private})
		w.make(room.CreateRequest{ID: "open", Mode: "battle"})
		w.join(w.connect(0, "amy"), "full", 1)
		ended := make(chan string, 10)
		c := w.At(1).Connect(w.T, "bob", func(o *client.Options) {
			o.OnUnsubscribed = func(channel string, _ *client.Error) { ended <- channel }
		})
		bob := clientroom.New(c)
		for id, want := range map[string]wire.ErrorCode{"full": wire.Full, "den": wire.BadCode, "none": wire.NotFound} {
			_, err := bob.Join(w.Context(), id, clientroom.JoinOptions{Code: "x"})
			w.refused(err, want)
		}
		_, err := bob.Create(w.Context(), clientroom.CreateOptions{ID: "full", Mode: "battle"})
		w.refused(err, wire.Conflict)
		joined := w.join(bob, "open", 1)
		await.True(w.T, "bob has the fields of the open room", func() bool {
			d, ok := joined.Document()
			return ok && d.Mode == "battle" && len(joined.Members()) == 1
		})
		await.True(w.T, "bob has only the channel of the open room", func() bool {
			channels, _ := w.http(200, "GET", "/v1/clients/bob/device", nil)["channels"].([]any)
			return slices.Equal(channels, []any{"room:open"})
		})
		if len(ended) > 0 {
			w.Errorf("the subscription to %s was lost", <-ended)
		}
	})
}
