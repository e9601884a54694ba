// Package api is the HTTP API for backends, under /v1. JSON in and out; an error is
// {"error":{"code","message"}} with the fitting status. An unknown field of a request is
// refused by name: an option that is silently ignored would be a promise broken.
package api
