// Package signedreq reads the signed requests of hooks and webhooks in tests that play the backend.
package signedreq

import (
	"encoding/json"
	"io"
	"net/http"

	"switchboard/webhook"
)

// Decode verifies the signature of r with secret and decodes its JSON body into v.
func Decode(r *http.Request, secret string, v any) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if err := webhook.Verify([]string{secret}, r.Header, body, 0); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}
