package main

import "fmt"

// eraseHeading introduces the table about erasures.
const eraseHeading = `
## Erased messages

Meanwhile a backend erases every fifth message of each channel, and of those to all clients: some at once, while they are on their way, and some when
most clients have them. Each client that was to receive the message must receive the report of its erasure, and no message after that report. In the end
all messages of the channels are read from Redis, over HTTP and over a socket from each broker, and by clients that subscribe from the beginning of
the channels, and from a position that brokers have in their memory. None may show what was erased, and these clients must receive everything else.

`

// eraseColumns are the columns of the table about erasures.
var eraseColumns = []column{
	{"fault", "", func(r row) string { return r.Fault }},
	{"erased", "messages whose erasure a broker accepted", func(r row) string { return fmt.Sprint(r.Erasures) }},
	{"unknown", "acknowledged messages that the store did not know when they were to be erased: Redis had lost them", func(r row) string { return fmt.Sprint(r.LostErasures) }},
	{"unseen", "addressees that an erased message had not reached before; they are not counted in *acked*", func(r row) string { return fmt.Sprint(r.ErasedUnseen) }},
	{"reported", "addressees that received the report of an erasure, of those that had to; gaps declare the others", func(r row) string { return fmt.Sprintf("%d of %d", r.Reported, r.ReportsDue) }},
	{"unreported", "of these, addressees without the report and without a gap that covers it", func(r row) string { return fmt.Sprint(r.Unreported) }},
	{"repeated", "reports that a client received again", func(r row) string { return fmt.Sprint(r.RepeatedReport) }},
	{"revealed", "erased messages that a client received after the report, that Redis holds in the end, or that a reader of the history then sees", func(r row) string { return fmt.Sprint(r.Revealed) }},
	{"read", "messages and reports that clients received in the end, when they read the channels", func(r row) string { return fmt.Sprint(r.ReadInTheEnd) }},
	{"missed", "stored messages and reports that these clients did not receive", func(r row) string { return fmt.Sprint(r.MissedByReader) }},
	{"", "ok or RED, for messages, presence, state and erasures", row.verdict},
}
