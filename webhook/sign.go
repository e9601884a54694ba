package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// TimestampHeader carries the time of the attempt in Unix seconds.
	TimestampHeader = "Switchboard-Timestamp"
	// SignatureHeader carries v1=<hex> for each secret, with commas between.
	SignatureHeader = "Switchboard-Signature"

	scheme = "v1="
)

// Sign puts both headers into header, with one signature for each secret.
func Sign(secrets []string, header http.Header, body []byte, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = scheme + hex.EncodeToString(digest(secret, timestamp, body))
	}
	header.Set(TimestampHeader, timestamp)
	header.Set(SignatureHeader, strings.Join(signatures, ","))
}

// digest is the HMAC of timestamp.body.
func digest(secret, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}
