package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

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

// object is a JSON object.
type object map[string]any

// prepare creates the hall and the square.
func (s shop) prepare(ctx context.Context) error {
	var seats []string
	for row := 'A'; row <= 'J'; row++ {
		seats = append(seats, fmt.Sprintf("%c1..%c12", row, row))
	}
	return errors.Join(
		s.call(ctx, http.MethodPut, "/v1/holds/hall", object{"seats": seats}, nil),
		s.call(ctx, http.MethodPost, "/v1/scenes", object{"id": "square", "world": "demo", "name": "The square"}, nil),
	)
}

func (s shop) call(ctx context.Context, method, path string, body, answer any) error {
	return s.api.Call(ctx, backend.Request{Method: method, Path: path, Body: body}, answer)
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
	var answer any
	if err = json.Unmarshal(body, &request); err == nil {
		answer, err = s.answer(r.Context(), request.User, request.Query)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusConflict)
		answer = object{"error": explain(err)}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s shop) answer(ctx context.Context, user string, q query) (any, error) {
	switch {
	case q.Buy != "":
		return s.buy(ctx, user, q.Buy)
	case q.Settle != "":
		return s.settle(ctx, q.Settle)
	}
	return nil, refusal{"bad_request", "buy and settle are the requests of the demo"}
}

// buy sells the seats of a hold to its user.
func (s shop) buy(ctx context.Context, user, id string) (any, error) {
	path := "/v1/holds/hall/holds/" + url.PathEscape(id)
	var hold struct {
		User string `json:"user"`
	}
	if err := s.call(ctx, http.MethodGet, path, nil, &hold); err != nil {
		return nil, err
	}
	if hold.User != user {
		return nil, refusal{"forbidden", "this is the hold of another user"}
	}
	// A shop takes the money here, and stores the sale in its database.
	var sold json.RawMessage
	return sold, s.call(ctx, http.MethodPost, path+"/confirm", nil, &sold)
}

// settle adds the boxes of a finished game to the leaderboard. All players may ask for it: the room
// is the id of the operation, so that each score counts once.
func (s shop) settle(ctx context.Context, id string) (any, error) {
	path := "/v1/rooms/" + url.PathEscape(id)
	var room struct {
		Channel string `json:"channel"`
		Room    struct {
			Data struct {
				Size int `json:"size"`
			} `json:"data"`
		} `json:"room"`
		Members []struct {
			N    int    `json:"n"`
			User string `json:"user"`
		} `json:"members"`
	}
	if err := s.call(ctx, http.MethodGet, path, nil, &room); err != nil {
		return nil, err
	}
	boxes, err := s.boxes(ctx, room.Channel)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, n := range boxes {
		total += n
	}
	if size := room.Room.Data.Size; size == 0 || total < size*size {
		return nil, refusal{"conflict", "the game has not ended"}
	}
	for _, m := range room.Members {
		score := object{"player": m.User, "score": boxes[m.N], "mode": "add", "operation": id}
		if err := s.call(ctx, http.MethodPost, "/v1/boards/dots/scores", score, nil); err != nil {
			return nil, err
		}
	}
	return object{}, s.call(ctx, http.MethodPost, path+"/finish", nil, nil)
}

// boxes returns the number of boxes of each player of a room.
func (s shop) boxes(ctx context.Context, channel string) (map[int]int, error) {
	boxes := map[int]int{}
	state, err := s.api.State(ctx, channel, backend.PageQuery{Limit: 1000})
	for name, field := range state.Fields {
		var n int
		if strings.HasPrefix(name, "g/box/") && json.Unmarshal(field.Value, &n) == nil {
			boxes[n]++
		}
	}
	return boxes, err
}

// refusal is an error that a client receives.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r refusal) Error() string { return r.Message }

// explain returns the error of a client for an error of this backend or of the broker.
func explain(err error) any {
	if e, ok := errors.AsType[*backend.Error](err); ok {
		return object{"code": e.Code, "message": e.Message, "data": e.Data}
	}
	if e, ok := errors.AsType[refusal](err); ok {
		return e
	}
	return refusal{"failed", "the demo has failed to do this"}
}
