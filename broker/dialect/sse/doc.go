// Package sse is the dialect of Server-Sent Events (HTML Living Standard §9.2): the URL of one GET
// request names the channels, and the response body is the stream of events. The data of an event
// is the JSON of package native.
//
// The client sends nothing after its request. Each event has an id that holds the positions in all
// channels, on $all and in the client queue; see [Position]. EventSource sends the last id when it
// connects again, so the next request resumes everything, on any server.
package sse
