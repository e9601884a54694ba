// Package api serves the HTTP API for backends, under /v1. Requests and answers are JSON. An error
// is {"error":{"code","message"}} with a matching status. A request with an unknown field is
// refused, and the error names the field. So a misspelt field is never silently ignored.
package api
