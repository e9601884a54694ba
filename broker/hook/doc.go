// Package hook asks the backend, by a signed POST, whether a client may connect and whether it may
// subscribe to a channel.
//
// # Question
//
//	{"hook":"connect","client":"alice/phone","user":"alice",
//	 "address":"192.0.2.7:51312","info":{…}}
//	{"hook":"subscribe","client":"alice/phone","user":"alice",
//	 "address":"192.0.2.7:51312","info":{…},"channel":"chat:42"}
//
// The POST is signed like a webhook. When a client refreshes its token, the connect hook is asked
// again, with "refresh":true.
//
// # Answer
//
// The answer is status 200 and a JSON object:
//
//   - "allow": true or false.
//   - "reason", with allow false: a text that the client receives.
//   - "info" and "user", with allow true, for connect only: they replace the client's own.
//
// Any other status, other JSON, no "allow" or no answer within the timeout is a failure. The caller
// then refuses the client.
//
// # Limits
//
// At most Concurrency questions are sent at once, over as many connections, which stay open. Other
// questions wait. The timeout counts from Question.Since and includes the wait. If it passes during
// the wait, the question fails and is not sent.
package hook
