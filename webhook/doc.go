// Package webhook sends events to the backend's URL as signed POSTs, and verifies such a POST for a
// receiver that is written in Go. It needs nothing of the broker: a receiver imports it for [Verify] alone.
//
// # A delivery
//
// The body is {"events":[…]}: one event or many, each with an id that is the same in every attempt. Two headers
// stand beside it:
//
//	Switchboard-Timestamp: 1794225600
//	Switchboard-Signature: v1=5257a8…,v1=98ce21…
//
// Each v1 is the hex HMAC-SHA256, under one of the secrets, of the timestamp, a dot, and the body as it came. There is one
// for each secret, so that sender and receivers change theirs at different times. Other versions are passed over.
//
// # Answers
//
//	2xx                 delivered; the body is not looked at
//	400, 413, 422       this content is refused: the events are sent one by one, and those refused alone are given up
//	410                 nobody is there any more: the events are given up without another attempt
//	429, 503            sent again, not before Retry-After
//	anything else       sent again, redirects too: they are not followed, for the signature is meant for one receiver
//	no answer in time   sent again
package webhook
