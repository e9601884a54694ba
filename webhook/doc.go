// Package webhook sends events to the backend's URL as signed POSTs. A receiver in Go verifies such
// a POST with [Verify]. The package does not depend on the broker, so a receiver can import it.
//
// # Deliveries
//
// The body is {"events":[…]} with one or more events. Each event has an id that is the same in all
// attempts. Two headers authenticate the body:
//
//	Switchboard-Timestamp: 1794225600
//	Switchboard-Signature: v1=5257a8…,v1=98ce21…
//
// Each v1 is the hex HMAC-SHA256 of the timestamp, a dot and the body as sent, under one of the
// secrets. There is one v1 for each secret of the sender, so that the sender and the receivers can
// change their secrets at different times. Verify ignores other versions.
//
// # Answers
//
//	2xx                 delivered; the body is ignored
//	400, 413, 422       the content is refused: the events are sent again one by one, and an event
//	                    that is refused on its own becomes a dead letter
//	410                 the endpoint is gone: the events become dead letters at once
//	429, 503            sent again, not before Retry-After
//	anything else       sent again; redirects are not followed, because the signature is for one
//	                    receiver
//	no answer in time   sent again
package webhook
