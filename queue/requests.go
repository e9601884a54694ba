package queue

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// Why PushRequest stores nothing. Each is an [ErrFull].
var (
	// ErrFull is returned when a request list, or the sender's share of it, has no room.
	ErrFull = errors.New("queue: no room in the request list")
	// ErrRequestCap is returned when the list holds RequestCap requests.
	ErrRequestCap = fmt.Errorf("%w: too many requests", ErrFull)
	// ErrRequestBytes is returned when the list holds RequestBytes.
	ErrRequestBytes = fmt.Errorf("%w: too many bytes", ErrFull)
	// ErrRequestShare is returned when the sender has RequestShare requests in the list.
	ErrRequestShare = fmt.Errorf("%w: too many requests of one sender", ErrFull)
	// ErrRequestShareBytes is returned when the sender has RequestShareBytes in the list.
	ErrRequestShareBytes = fmt.Errorf("%w: too many bytes of one sender", ErrFull)
)

// Request is a client's question to the backend's workers.
type Request struct {
	List   int    // N of qq_{N}
	Sender string // counts towards its share of the list
	Data   []byte // JSON
}

// requestRefusal is the error for what push_request returns.
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

// senderDigest stands for a sender in Redis: it is short however long the name is, and two names
// never share one.
func senderDigest(sender string) string {
	sum := sha256.Sum256([]byte(sender))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
