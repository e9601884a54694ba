package session

import (
	"context"
	"encoding/json"

	"switchboard/internal/strict"
)

// Decoded returns the method that calls run with its data, decoded into an In as package strict
// does. A request without data, or with null, has the data {}.
func Decoded[In any](run func(ctx context.Context, c Caller, in In) (any, error)) Method {
	return func(ctx context.Context, c Caller, data json.RawMessage) (any, error) {
		var in In
		if len(data) == 0 || string(data) == "null" {
			data = json.RawMessage("{}")
		}
		if err := strict.Decode(data, &in); err != nil {
			return nil, err
		}
		return run(ctx, c, in)
	}
}
