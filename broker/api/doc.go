// Package api serves the HTTP API for backends, under /v1. Requests and answers are JSON. An error
// is {"error":{"code","message"}} with a matching status. A request with an unknown field is
// refused, and the error names the field. So a misspelt field is never silently ignored.
//
// # Files
//
// Files in reading order: subscribe.go, online.go, webhooks.go, states.go, queue.go, check.go,
// batch.go, read.go, disconnect.go, erase.go, history.go, targets.go, notify.go, push.go,
// ratelimit.go, waits.go, pushcall.go, call.go, rejected.go, revoke.go, parameters.go, errors.go,
// decode.go, self.go, change.go, answer.go, api.go, body.go, scan.go, client_watches.go, stats.go.
package api
