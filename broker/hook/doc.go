// Package hook asks the backend, by a signed POST, whether a client may connect, and whether it may subscribe to a channel.
//
// # A question
//
//	{"hook":"connect","client":"alice/phone","user":"alice","address":"192.0.2.7:51312","info":{…}}
//	{"hook":"subscribe","client":"alice/phone","user":"alice","address":"192.0.2.7:51312","info":{…},"channel":"chat:42"}
//
// It is signed as webhooks are. A refreshed token asks connect again, with "refresh":true.
//
// # The answer
//
// 200 and a JSON object with "allow", true or false; beside false a "reason", which the client is told; beside true, of connect alone,
// "info" in the place of the client's, and "user". Anything else is no answer: no 200, no JSON, no allow, none
// within the timeout. Who gets none keeps the door closed.
//
// # Bounds
//
// At most Concurrency questions are under way, over as many connections, which are kept. The timeout counts from when the
// question came up: behind a backend that hangs, those who wait for their turn are told in time, too, and without a call.
package hook
