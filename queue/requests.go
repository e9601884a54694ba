package queue

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// The errors of PushRequest. Each is an [ErrFull].
var (
	// ErrFull is returned if a request list, or the sender's share of it, is full.
	ErrFull = errors.New("queue: no room in the request list")
	// ErrRequestCap is returned if the list holds RequestCap requests.
	ErrRequestCap = fmt.Errorf("%w: too many requests", ErrFull)
	// ErrRequestBytes is returned if the list would hold more than RequestBytes.
	ErrRequestBytes = fmt.Errorf("%w: too many bytes", ErrFull)
	// ErrRequestShare is returned if the sender has RequestShare requests in the list.
	ErrRequestShare = fmt.Errorf("%w: too many requests of one sender", ErrFull)
	// ErrRequestShareBytes is returned if the sender would have more than RequestShareBytes in the
	// list.
	ErrRequestShareBytes = fmt.Errorf("%w: too many bytes of one sender", ErrFull)
)

// Request is a client's request to the backend's workers.
type Request struct {
	List   int    // N of qq_{N}
	Sender string // counts towards its share of the list
	Data   []byte // JSON
}

// requestRefusal returns the error for a result of push_request.
func requestRefusal(refusedBy int64) error {
	switch refusedBy {
	case 0:
		return nil
	case 3:
		return ErrRequestCap
	case 4:
		return ErrRequestBytes
	case 5:
		return ErrRequestShare
	case 6:
		return ErrRequestShareBytes
	}
	return fmt.Errorf("unexpected reply of a script: %d", refusedBy)
}

// senderDigest returns the first 12 bytes of the sender's SHA-256, which identify it in Redis:
// short for any length of the name, and without collisions in practice.
func senderDigest(sender string) string {
	sum := sha256.Sum256([]byte(sender))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
