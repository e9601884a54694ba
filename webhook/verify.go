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
	// ErrSignature is returned if no signature is valid under any of the secrets.
	ErrSignature = errors.New("webhook: bad signature")
	// ErrTimestamp is returned if the timestamp is invalid, or too far from the current time: the
	// delivery may be a replay.
	ErrTimestamp = errors.New("webhook: bad timestamp")
)

const (
	// Tolerance is the default tolerance of [Verify]: half of it for clock differences, half for the
	// network.
	Tolerance = 5 * time.Minute
	// maxSignatures limits the signatures that are compared, so that a header with thousands of them
	// costs little. No rotation of secrets needs as many.
	maxSignatures = 16
)

// Verify returns nil if body was signed with one of the secrets and its timestamp is at most
// tolerance before or after the current time. If not, it returns [ErrSignature] or [ErrTimestamp].
// A zero tolerance means [Tolerance]. Pass the body as received, before you decode it.
//
// A delivery can be replayed within the tolerance, and failed deliveries are sent again. So store
// the ids of events for at least that long, and drop events whose ids you have seen.
func Verify(secrets []string, header http.Header, body []byte, tolerance time.Duration) error {
	return verify(secrets, header, body, tolerance, time.Now())
}

func verify(secrets []string, header http.Header, body []byte, tolerance time.Duration, now time.Time) error {
	if tolerance <= 0 {
		tolerance = Tolerance
	}
	timestamp := header.Get(TimestampHeader)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	// Accept only the format of the sender. The range prevents an overflow in the subtraction below.
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp || seconds < 0 || seconds > 1<<40 {
		return ErrTimestamp
	}
	if !signed(secrets, header.Get(SignatureHeader), timestamp, body) {
		return ErrSignature
	}
	// Check the time after the signature, so that a forged delivery is always reported as
	// ErrSignature, and ErrTimestamp means a clock difference or a replay.
	if d := now.Sub(time.Unix(seconds, 0)); d > tolerance || d < -tolerance {
		return ErrTimestamp
	}
	return nil
}

// signed reports whether one of the signatures is valid under one of the secrets. It compares
// all of them in constant time.
func signed(secrets []string, signatures, timestamp string, body []byte) bool {
	var macs [][]byte
	for part := range strings.SplitSeq(signatures, ",") {
		text, found := strings.CutPrefix(strings.TrimSpace(part), signaturePrefix)
		if !found || len(text) != hex.EncodedLen(sha256.Size) {
			continue // another version
		}
		if mac, err := hex.DecodeString(text); err == nil {
			macs = append(macs, mac)
		}
		if len(macs) == maxSignatures {
			break
		}
	}
	if len(macs) == 0 {
		return false
	}
	valid := false
	for _, secret := range secrets {
		if secret == "" {
			continue // probably an unset variable; any sender could sign with it
		}
		want := digest(secret, timestamp, body)
		for _, mac := range macs {
			valid = hmac.Equal(mac, want) || valid
		}
	}
	return valid
}
