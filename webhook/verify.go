package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var (
	// ErrSignature says that none of the secrets made any of the signatures, or that there is none.
	ErrSignature = errors.New("webhook: bad signature")
	// ErrTimestamp says that the timestamp is none, or further from now than tolerated: it may be a replay.
	ErrTimestamp = errors.New("webhook: bad timestamp")
)

const (
	// Tolerance is the usual one: half of it for clocks that differ, half for the way.
	Tolerance = 5 * time.Minute
	// maxSignatures is how many are looked at: more than any rotation needs, and no work for whoever sends thousands.
	maxSignatures = 16
)

// Verify is nil when body came from somebody who has one of the secrets, no longer than tolerance ago (or ahead:
// clocks differ); zero means [Tolerance]. Else it is [ErrSignature] or [ErrTimestamp]. Give it the
// body as it came, before anything decodes it. Within the tolerance a delivery can be replayed, and failed ones come
// again by themselves: remember the ids of events for that long at least, and drop those you know.
func Verify(secrets []string, header http.Header, body []byte, tolerance time.Duration) error {
	return verify(secrets, header, body, tolerance, time.Now())
}

func verify(secrets []string, header http.Header, body []byte, tolerance time.Duration, now time.Time) error {
	if tolerance <= 0 {
		tolerance = Tolerance
	}
	timestamp := header.Get(TimestampHeader)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	// The one spelling that the sender uses; the range keeps the difference below from overflowing.
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp || seconds < 0 || seconds > 1<<40 {
		return ErrTimestamp
	}
	if !signed(secrets, header.Get(SignatureHeader), timestamp, body) {
		return ErrSignature
	}
	// Behind the signature: an honest clock that is off, and not any guess, is what this tells of.
	if d := now.Sub(time.Unix(seconds, 0)); d > tolerance || d < -tolerance {
		return ErrTimestamp
	}
	return nil
}

// signed compares every signature with that of every secret, in constant time and whichever fits first.
func signed(secrets []string, signatures, timestamp string, body []byte) bool {
	var given [][]byte
	for part := range strings.SplitSeq(signatures, ",") {
		text, found := strings.CutPrefix(strings.TrimSpace(part), scheme)
		if !found || len(text) != hex.EncodedLen(sha256.Size) {
			continue // another version
		}
		if mac, err := hex.DecodeString(text); err == nil {
			given = append(given, mac)
		}
		if len(given) == maxSignatures {
			break
		}
	}
	if len(given) == 0 {
		return false
	}
	good := false
	for _, secret := range secrets {
		if secret == "" {
			continue // a variable that is not set: anybody could sign with it
		}
		want := digest(secret, timestamp, body)
		for _, mac := range given {
			good = hmac.Equal(mac, want) || good
		}
	}
	return good
}
