// Package limit limits rates and connections: token buckets for connections, addresses and API
// keys, a bounded table that counts connections by address, and the rates of what senders (users,
// or addresses of clients without a user) store.
package limit
