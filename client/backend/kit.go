package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Rooms are the rooms of a broker, see docs/rooms.md. The errors of all calls are an [*Error].
type Rooms struct{ *Client }

// Holds are the holds of a broker, see docs/holds.md. The errors of all calls are an [*Error].
type Holds struct{ *Client }

// Boards are the leaderboards of a broker, see docs/boards.md. The errors of all calls are an
// [*Error].
type Boards struct{ *Client }

// Accounts are the accounts of a broker, see docs/accounts.md. Their calls need a key with the
// scope admin; package client/account has the calls of users. The errors of all calls are an
// [*Error].
type Accounts struct{ *Client }

// Sessions are JSON documents of users that end by themselves.
type Sessions struct{ *Client }

// Scenes are the avatars and scenes of a broker, see docs/scenes.md. The errors of all calls are an
// [*Error].
type Scenes struct{ *Client }

// Put replaces the session of a user with data, encoded as JSON. A ttl of 0 means an hour. A
// version other than 0 is the one that the session must have; see also Absent and Exists.
func (s Sessions) Put(ctx context.Context, user string, data any, ttl time.Duration, version int64) (answer Session, err error) {
	body, err := json.Marshal(data) // nil is the document null
	if err != nil {
		return answer, err
	}
	err = s.Call(ctx, Request{
		Method: http.MethodPut, Path: path("/v1/sessions/{}", user), Query: values("ttl_ms", ttl.Milliseconds()), Body: json.RawMessage(body),
		Header: condition(version),
	}, &answer)
	return answer, err
}
