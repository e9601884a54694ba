// Package limit limits rates and connections: token buckets for connections, addresses and API
// keys, a bounded table that counts connections by address, the rates of what senders (users, or
// addresses of clients without a user) store on all servers and make the store read, and their
// shares of what is under way.
package limit
