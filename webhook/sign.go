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
	// TimestampHeader has the time of the attempt in Unix seconds.
	TimestampHeader = "Switchboard-Timestamp"
	// SignatureHeader has a signature v1=<hex> for each secret, separated by commas.
	SignatureHeader = "Switchboard-Signature"

	// signaturePrefix starts a signature of the only version.
	signaturePrefix = "v1="
)

// Sign signs body with each secret and sets [TimestampHeader] and [SignatureHeader].
func Sign(secrets []string, header http.Header, body []byte, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = signaturePrefix + hex.EncodeToString(digest(secret, timestamp, body))
	}
	header.Set(TimestampHeader, timestamp)
	header.Set(SignatureHeader, strings.Join(signatures, ","))
}

// digest returns the HMAC-SHA256 of "<timestamp>.<body>".
func digest(secret, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}
