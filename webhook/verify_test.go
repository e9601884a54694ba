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

// known is what openssl makes of the example.
const known = "54133b588d6330ed1620501e133ec813cf459513e1a2d5edde1f24f712f9588b"

var noon = time.Date(2026, 11, 9, 12, 0, 0, 0, time.UTC)

// signedAt is what a sender with these secrets sends at noon.
func signedAt(at time.Time, body string, secrets ...string) http.Header {
	h := http.Header{}
	Sign(secrets, h, []byte(body), at)
	return h
}

// TestKnownSignature is one made by openssl: printf '%s' '1794225600.{"events":[]}' | openssl dgst -sha256 -hmac secret
func TestKnownSignature(t *testing.T) {
	h := signedAt(time.Unix(1794225600, 0), `{"events":[]}`, "secret")
	if h.Get(TimestampHeader) != "1794225600" || h.Get(SignatureHeader) != "v1="+known {
		t.Errorf("signed %v", h)
	}
}

func TestVerify(t *testing.T) {
	const body = `{"events":[{"id":"1"}]}`
	good := signedAt(noon, body, "old", "new")
	with := func(name, value string) http.Header {
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
		{"the other secret", []string{"new"}, good, body, 0, noon, nil},
		{"one of the receiver's", []string{"newest", "new"}, good, body, 0, noon, nil},
		{"another secret", []string{"newer"}, good, body, 0, noon, ErrSignature},
		{"no secret", nil, good, body, 0, noon, ErrSignature},
		{"an empty secret", []string{""}, signedAt(noon, body, ""), body, 0, noon, ErrSignature},
		{"another body", []string{"old"}, good, body + " ", 0, noon, ErrSignature},
		{"no body", []string{"old"}, good, "", 0, noon, ErrSignature},
		{"another time", []string{"old"}, with(TimestampHeader, strconv.FormatInt(noon.Unix()+1, 10)), body, 0, noon, ErrSignature},
		{"the dot moved", []string{"old"}, with(TimestampHeader, strconv.FormatInt(noon.Unix()/10, 10)), "0." + body, 0, noon, ErrSignature},

		{"as old as tolerated", []string{"old"}, good, body, 0, noon.Add(Tolerance), nil},
		{"older", []string{"old"}, good, body, 0, noon.Add(Tolerance + time.Second), ErrTimestamp},
		{"as far ahead as tolerated", []string{"old"}, good, body, 0, noon.Add(-Tolerance), nil},
		{"further", []string{"old"}, good, body, 0, noon.Add(-Tolerance - time.Second), ErrTimestamp},
		{"a short tolerance", []string{"old"}, good, body, time.Minute, noon.Add(61 * time.Second), ErrTimestamp},

		{"no headers", []string{"old"}, http.Header{}, body, 0, noon, ErrTimestamp},
		{"no timestamp", []string{"old"}, with(TimestampHeader, ""), body, 0, noon, ErrTimestamp},
		{"a timestamp that is none", []string{"old"}, with(TimestampHeader, "noon"), body, 0, noon, ErrTimestamp},
		{"in another spelling", []string{"old"}, with(TimestampHeader, "+"+good.Get(TimestampHeader)), body, 0, noon, ErrTimestamp},
		{"negative", []string{"old"}, signedAt(time.Unix(-1, 0), body, "old"), body, 0, time.Unix(0, 0), ErrTimestamp},
		{"in the far future", []string{"old"}, signedAt(time.Unix(1<<62, 0), body, "old"), body, 0, noon, ErrTimestamp},

		{"no signature", []string{"old"}, with(SignatureHeader, ""), body, 0, noon, ErrSignature},
		{"of another version", []string{"old"}, with(SignatureHeader, "v2="+mac), body, 0, noon, ErrSignature},
		{"without a version", []string{"old"}, with(SignatureHeader, mac), body, 0, noon, ErrSignature},
		{"an empty one", []string{"old"}, with(SignatureHeader, "v1="), body, 0, noon, ErrSignature},
		{"cut off", []string{"old"}, with(SignatureHeader, "v1="+mac[:62]), body, 0, noon, ErrSignature},
		{"with more behind", []string{"old"}, with(SignatureHeader, "v1="+mac+"00"), body, 0, noon, ErrSignature},
		{"no hex", []string{"old"}, with(SignatureHeader, "v1="+strings.Repeat("z", 64)), body, 0, noon, ErrSignature},
		{"in capitals", []string{"old"}, with(SignatureHeader, "v1="+strings.ToUpper(mac)), body, 0, noon, nil},
		{"among others", []string{"old"}, with(SignatureHeader, "v0=x, v1="+strings.Repeat("0", 64)+" , v1="+mac), body, 0, noon, nil},
		{"behind thousands", []string{"old"}, with(SignatureHeader, strings.Repeat("v1="+strings.Repeat("0", 64)+",", 5000)+"v1="+mac), body, 0, noon, ErrSignature},
	}
	for _, tt := range tests {
		if err := verify(tt.secrets, tt.header, []byte(tt.body), tt.tolerance, tt.at); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	h := http.Header{}
	Sign([]string{"s"}, h, []byte(body), time.Now())
	if err := Verify([]string{"s"}, h, []byte(body), 0); err != nil {
		t.Errorf("just now: %v", err)
	}
}

// FuzzVerify: whatever the headers say, only what was signed with the secret passes.
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
			t.Fatalf("the error is %v", err)
		}
		want := hex.EncodeToString(digest("secret", timestamp, body))
		if signed := strings.Contains(strings.ToLower(signature), "v1="+want); passed && !signed {
			t.Fatalf("%q %q passed", timestamp, signature)
		}
		Sign([]string{"secret"}, h, body, noon)
		if err := verify([]string{"secret"}, h, body, time.Hour, noon); err != nil {
			t.Fatalf("signed, and refused: %v", err)
		}
	})
}
