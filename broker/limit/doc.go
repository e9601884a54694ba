// Package limit limits rates and connections: token buckets for connections, addresses and API
// keys, and a bounded table that counts connections by address.
package limit
