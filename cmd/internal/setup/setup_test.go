package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/broker/delivery"
	"switchboard/configs"
	"switchboard/events"
)

func TestExit(t *testing.T) {
	_, usage := configs.LoadBroker([]string{"--nonsense"}, nil)
	tests := []struct {
		err            error
		code           int
		stdout, stderr string
	}{
		{nil, 0, "", ""},
		{configs.ErrHelp, 0, "the help", ""},
		{configs.ErrVersion, 0, "name " + Version() + "\n", ""},
		{usage, 2, "", "name: unknown flag: --nonsense\nTry name --help.\n"},
		{errors.Join(errors.New("one"), errors.New("two")), 1, "", "name: one; two\n"},
	}
	for _, tt := range tests {
		var stdout, stderr bytes.Buffer
		if code := Exit("name", "the help", tt.err, &stdout, &stderr); code != tt.code || stdout.String() != tt.stdout || stderr.String() != tt.stderr {
			t.Errorf("%v: got %d, %q, %q", tt.err, code, &stdout, &stderr)
		}
	}
}

func TestLog(t *testing.T) {
	for format, isJSON := range map[string]bool{"json": true, "auto": true, "console": false} { // no terminal here
		var out bytes.Buffer
		log, err := Log(&out, "warn", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Info().Msg("not this")
		log.Warn().Msg("this")
		if json.Valid(out.Bytes()) != isJSON || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), "this") {
			t.Errorf("%s: %q", format, &out)
		}
	}
	if _, err := Log(&bytes.Buffer{}, "loud", "json"); err == nil {
		t.Error("an unknown level was accepted")
	}
	redisLog{zerolog.Nop()}.Printf(t.Context(), "%s", "harmless without a log")
}

// TestFieldEnds: FieldEnds returns nil without an endpoint, and if the events are not wanted.
func TestFieldEnds(t *testing.T) {
	settings := configs.Webhooks{URL: "http://127.0.0.1:9000/"}
	store := events.NewMemory(events.StoreOptions{})
	if FieldEnds(configs.Webhooks{}, store, nil, zerolog.Nop()) != nil {
		t.Error("FieldEnds without an endpoint: want nil")
	}
	if settings.Dispatch.Wanted = []events.Kind{events.UserOnline}; FieldEnds(settings, store, nil, zerolog.Nop()) != nil {
		t.Error("FieldEnds without fields_gone: want nil")
	}
	settings.Dispatch.Wanted = nil // all
	if errs := FieldEnds(settings, store, nil, zerolog.Nop()).Track(t.Context(), []string{"room"}); errs[0] != nil {
		t.Fatal(errs)
	}
	tracked := 0
	for shard := range events.Shards {
		channels, _, err := store.TrackedChannels(t.Context(), shard, "", 2)
		if err != nil {
			t.Fatal(err)
		}
		tracked += len(channels)
	}
	if tracked != 1 {
		t.Errorf("%d tracked channels, want 1", tracked)
	}
}

// TestSetAckDeadline: SetAckDeadline returns nil without an endpoint, and if the events are not
// wanted.
func TestSetAckDeadline(t *testing.T) {
	settings := configs.Webhooks{URL: "http://127.0.0.1:9000/"}
	store := events.NewMemory(events.StoreOptions{})
	if SetAckDeadline(configs.Webhooks{}, store) != nil {
		t.Error("SetAckDeadline without an endpoint: want nil")
	}
	if settings.Dispatch.Wanted = []events.Kind{events.UserOnline}; SetAckDeadline(settings, store) != nil {
		t.Error("SetAckDeadline without message_undelivered: want nil")
	}
	settings.Dispatch.Wanted = append(settings.Dispatch.Wanted, events.MessageUndelivered)
	record := SetAckDeadline(settings, store)
	if record == nil {
		t.Fatal("SetAckDeadline with message_undelivered: got nil")
	}
	d := delivery.AckDeadline{User: "ann", Clients: []delivery.ClientResult{{Client: "phone", ID: 7}}, Data: []byte("1"), After: time.Nanosecond}
	if err := record(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var records []string
	for shard := range events.Shards {
		claims, err := store.Claim(t.Context(), shard, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claims {
			records = append(records, string(c.Record))
		}
	}
	if len(records) != 1 || !strings.Contains(records[0], `"user":"ann","clients":[{"client":"phone","id":7}],"data":1`) {
		t.Errorf("recorded %s", records)
	}
}
