// Package limit is what a connection, an address or an API key may use in a second: token buckets of one number each, and a
// bounded table of addresses.
package limit
