package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the value of a call, and fails the test if the call failed: must(f.Bind(…))(t). The
// second pair of parentheses is needed because a call with two results must be the only argument.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func fails(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// push appends n messages with the payloads 1, 2, … to a channel and returns their ids.
func push(t testing.TB, q contract, channel string, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = must(q.AppendChannel(t.Context(), ChannelPush{Channel: channel, Data: fmt.Append(nil, i+1)}))(t).ID
	}
	return ids
}

// send appends n messages with the payloads 1, 2, … to a client's list and returns their ids.
func send(t testing.TB, q contract, client string, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = must(q.AppendClient(t.Context(), ClientPush{Client: client, Data: fmt.Append(nil, i+1)}))(t).ID
	}
	return ids
}

func idsOf(messages []Message) []int64 {
	ids := make([]int64, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	return ids
}

func wantIDs(t testing.TB, what string, p Page, want []int64) {
	t.Helper()
	if got := idsOf(p.Messages); !slices.Equal(got, want) {
		t.Errorf("%s: got ids %v, want %v", what, got, want)
	}
}

// bind is BindClients for one claim.
func bind(ctx context.Context, q contract, c Claim) (Bound, error) {
	o := q.BindClients(ctx, []Claim{c})[0]
	return o.Value, o.Err
}

// Bind calls bind.
func (f fixture) Bind(ctx context.Context, c Claim) (Bound, error) { return bind(ctx, f.contract, c) }

// Refresh is RefreshClients for one client.
func (f fixture) Refresh(ctx context.Context, server string, held HeldClient) error {
	return f.RefreshClients(ctx, server, []HeldClient{held})[0]
}

// ownedFields returns the fields in a record of st_o_.
func ownedFields(record string) []string {
	words := strings.Split(record, " ") // generation, time of the end, server, fields
	return words[3:]
}
