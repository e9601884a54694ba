package webhook

import (
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// opensslMAC is the signature that openssl computes in TestKnownSignature.
const opensslMAC = "54133b588d6330ed1620501e133ec813cf459513e1a2d5edde1f24f712f9588b"

var noon = time.Date(2026, 11, 9, 12, 0, 0, 0, time.UTC)

// signedAt returns the headers that a sender with these secrets sends.
func signedAt(at time.Time, body string, secrets ...string) http.Header {
	h := http.Header{}
	Sign(secrets, h, []byte(body), at)
	return h
}

// TestKnownSignature compares a signature with the output of
// printf '%s' '1794225600.{"events":[]}' | openssl dgst -sha256 -hmac secret
func TestKnownSignature(t *testing.T) {
	h := signedAt(time.Unix(1794225600, 0), `{"events":[]}`, "secret")
	if h.Get(TimestampHeader) != "1794225600" || h.Get(SignatureHeader) != "v1="+opensslMAC {
		t.Errorf("signed %v", h)
	}
}

func TestVerify(t *testing.T) {
	const body = `{"events":[{"id":"1"}]}`
	good := signedAt(noon, body, "old", "new")
	goodWith := func(name, value string) http.Header {
		h := good.Clone()
		h.Set(name, value)
		return h
	}
	mac := strings.TrimPrefix(strings.Split(good.Get(SignatureHeader), ",")[0], "v1=")
	tests := []struct {
		name      string
		secrets   []string
		header    http.Header
		body      string
		tolerance time.Duration
		at        time.Time
		want      error
	}{
		{"good", []string{"old"}, good, body, 0, noon, nil},
		{"the second secret of the sender", []string{"new"}, good, body, 0, noon, nil},
		{"the second secret of the receiver", []string{"newest", "new"}, good, body, 0, noon, nil},
		{"another secret", []string{"newer"}, good, body, 0, noon, ErrSignature},
		{"no secret", nil, good, body, 0, noon, ErrSignature},
		{"an empty secret", []string{""}, signedAt(noon, body, ""), body, 0, noon, ErrSignature},
		{"a changed body", []string{"old"}, good, body + " ", 0, noon, ErrSignature},
		{"an empty body", []string{"old"}, good, "", 0, noon, ErrSignature},
		{"a changed timestamp", []string{"old"}, goodWith(TimestampHeader, strconv.FormatInt(noon.Unix()+1, 10)), body, 0, noon, ErrSignature},
		{"a digit moved from the timestamp to the body", []string{"old"}, goodWith(TimestampHeader, strconv.FormatInt(noon.Unix()/10, 10)), "0." + body, 0, noon, ErrSignature},

		{"as old as tolerated", []string{"old"}, good, body, 0, noon.Add(Tolerance), nil},
		{"older than tolerated", []string{"old"}, good, body, 0, noon.Add(Tolerance + time.Second), ErrTimestamp},
		{"as far ahead as tolerated", []string{"old"}, good, body, 0, noon.Add(-Tolerance), nil},
		{"further ahead than tolerated", []string{"old"}, good, body, 0, noon.Add(-Tolerance - time.Second), ErrTimestamp},
		{"a short tolerance", []string{"old"}, good, body, time.Minute, noon.Add(61 * time.Second), ErrTimestamp},

		{"no headers", []string{"old"}, http.Header{}, body, 0, noon, ErrTimestamp},
		{"no timestamp", []string{"old"}, goodWith(TimestampHeader, ""), body, 0, noon, ErrTimestamp},
		{"an invalid timestamp", []string{"old"}, goodWith(TimestampHeader, "noon"), body, 0, noon, ErrTimestamp},
		{"a timestamp with a plus sign", []string{"old"}, goodWith(TimestampHeader, "+"+good.Get(TimestampHeader)), body, 0, noon, ErrTimestamp},
		{"a negative timestamp", []string{"old"}, signedAt(time.Unix(-1, 0), body, "old"), body, 0, time.Unix(0, 0), ErrTimestamp},
		{"a timestamp in the far future", []string{"old"}, signedAt(time.Unix(1<<62, 0), body, "old"), body, 0, noon, ErrTimestamp},

		{"no signature", []string{"old"}, goodWith(SignatureHeader, ""), body, 0, noon, ErrSignature},
		{"a signature of another version", []string{"old"}, goodWith(SignatureHeader, "v2="+mac), body, 0, noon, ErrSignature},
		{"a signature without a version", []string{"old"}, goodWith(SignatureHeader, mac), body, 0, noon, ErrSignature},
		{"an empty signature", []string{"old"}, goodWith(SignatureHeader, "v1="), body, 0, noon, ErrSignature},
		{"a truncated signature", []string{"old"}, goodWith(SignatureHeader, "v1="+mac[:62]), body, 0, noon, ErrSignature},
		{"a signature with extra digits", []string{"old"}, goodWith(SignatureHeader, "v1="+mac+"00"), body, 0, noon, ErrSignature},
		{"a signature that is not hex", []string{"old"}, goodWith(SignatureHeader, "v1="+strings.Repeat("z", 64)), body, 0, noon, ErrSignature},
		{"a signature in capitals", []string{"old"}, goodWith(SignatureHeader, "v1="+strings.ToUpper(mac)), body, 0, noon, nil},
		{"a valid signature among others", []string{"old"}, goodWith(SignatureHeader, "v0=x, v1="+strings.Repeat("0", 64)+" , v1="+mac), body, 0, noon, nil},
		{"a valid signature after thousands of others", []string{"old"}, goodWith(SignatureHeader, strings.Repeat("v1="+strings.Repeat("0", 64)+",", 5000)+"v1="+mac), body, 0, noon, ErrSignature},
	}
	for _, tt := range tests {
		if err := verify(tt.secrets, tt.header, []byte(tt.body), tt.tolerance, tt.at); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	h := http.Header{}
	Sign([]string{"s"}, h, []byte(body), time.Now())
	if err := Verify([]string{"s"}, h, []byte(body), 0); err != nil {
		t.Errorf("Verify at the current time: %v", err)
	}
}

// FuzzVerify checks that only deliveries that are signed with the secret are valid.
func FuzzVerify(f *testing.F) {
	good := signedAt(noon, "body", "secret")
	f.Add(good.Get(TimestampHeader), good.Get(SignatureHeader), []byte("body"))
	f.Add("", "", []byte(""))
	f.Add("-9223372036854775808", "v1=,v1=zz,,", []byte("{}"))
	f.Add("0", "v1="+hex.EncodeToString(digest("", "0", nil)), []byte(""))
	f.Fuzz(func(t *testing.T, timestamp, signature string, body []byte) {
		h := http.Header{TimestampHeader: {timestamp}, SignatureHeader: {signature}}
		err := verify([]string{"secret", ""}, h, body, time.Hour, noon)
		passed := err == nil
		if !passed && !errors.Is(err, ErrSignature) && !errors.Is(err, ErrTimestamp) {
			t.Fatalf("unexpected error %v", err)
		}
		want := hex.EncodeToString(digest("secret", timestamp, body))
		if signed := strings.Contains(strings.ToLower(signature), "v1="+want); passed && !signed {
			t.Fatalf("timestamp %q, signature %q: valid without a signature under the secret", timestamp, signature)
		}
		Sign([]string{"secret"}, h, body, noon)
		if err := verify([]string{"secret"}, h, body, time.Hour, noon); err != nil {
			t.Fatalf("a signed delivery: %v", err)
		}
	})
}
