package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"switchboard/client/backend"
	"switchboard/webhook"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 64 << 10

// shop is the backend of the demo. The broker posts the requests of clients to it.
type shop struct {
	api     *backend.Client
	secrets []string
}

// prepare creates the hall and the square.
func (s shop) prepare(ctx context.Context) error {
	var hall backend.ResourceSettings
	for row := 'A'; row <= 'J'; row++ {
		hall.Seats = append(hall.Seats, fmt.Sprintf("%c1..%c12", row, row))
	}
	_, err1 := backend.Holds{Client: s.api}.Put(ctx, "hall", hall, 0)
	_, err2 := backend.Scenes{Client: s.api}.Create(ctx, backend.NewScene{ID: "square", World: "demo", Name: "The square"})
	return errors.Join(err1, err2)
}

// query is the data of a client's request: one of its members is present.
type query struct {
	Buy    string `json:"buy"`    // the id of a hold
	Settle string `json:"settle"` // the id of a room whose game has ended
}

// ServeHTTP answers a request of a client: with JSON, or with an error that the client receives.
func (s shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil || webhook.Verify(s.secrets, r.Header, body, 0) != nil {
		http.Error(w, "only the broker may send requests", http.StatusForbidden)
		return
	}
	var request struct {
		User  string `json:"user"`
		Query query  `json:"query"`
	}
	if err = json.Unmarshal(body, &request); err == nil {
		err = s.answer(r.Context(), request.User, request.Query)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": explain(err)})
}

func (s shop) answer(ctx context.Context, user string, q query) error {
	switch {
	case q.Buy != "":
		return s.buy(ctx, user, q.Buy)
	case q.Settle != "":
		return s.settle(ctx, q.Settle)
	}
	return refusal{"bad_request", "buy and settle are the requests of the demo"}
}

// buy sells the seats of a hold to its user.
func (s shop) buy(ctx context.Context, user, id string) error {
	holds := backend.Holds{Client: s.api}
	hold, err := holds.Get(ctx, "hall", id)
	if err != nil {
		return err
	}
	if hold.User != user {
		return refusal{"forbidden", "this is the hold of another user"}
	}
	// A shop takes the money here, and stores the sale in its database.
	_, err = holds.Confirm(ctx, "hall", id)
	return err
}

// settle adds the boxes of a finished game to the leaderboard. All players may ask for it: the room
// is the id of the operation, so that each score counts once.
func (s shop) settle(ctx context.Context, id string) error {
	rooms, boards := backend.Rooms{Client: s.api}, backend.Boards{Client: s.api}
	room, err := rooms.Get(ctx, id)
	if err != nil {
		return err
	}
	boxes, total, err := s.boxes(ctx, room.Channel)
	if err != nil {
		return err
	}
	var game struct {
		Size int `json:"size"`
	}
	if err := json.Unmarshal(room.Room.Data, &game); err != nil || game.Size < 1 || total < game.Size*game.Size {
		return refusal{"conflict", "the game has not ended"}
	}
	for _, m := range room.Members {
		score := backend.Score{Player: m.User, Score: boxes[m.N], Mode: "add", Operation: id}
		if _, err := boards.Submit(ctx, "dots", score); err != nil {
			return err
		}
	}
	return rooms.Finish(ctx, id)
}

// boxes returns the number of boxes of each player of a room, and of all.
func (s shop) boxes(ctx context.Context, channel string) (boxes map[int]int64, total int, err error) {
	boxes = map[int]int64{}
	state, err := s.api.State(ctx, channel, backend.PageQuery{Prefix: "g/box/", Limit: 1000})
	for _, field := range state.Fields {
		var n int
		if json.Unmarshal(field.Value, &n) == nil {
			boxes[n]++
			total++
		}
	}
	return boxes, total, err
}

// refusal is an error that a client receives.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r refusal) Error() string { return r.Message }

// explain returns what a client receives for an error of this backend or of the broker.
func explain(err error) refusal {
	if e, ok := errors.AsType[*backend.Error](err); ok {
		return refusal{string(e.Code), e.Message}
	}
	if e, ok := errors.AsType[refusal](err); ok {
		return e
	}
	return refusal{"failed", "the demo has failed to do this"}
}
