package spec_test

// operatorSteps are calls of operators: of the console and of the command line.
var operatorSteps = []step{
	{op: "getSelf"},
	{op: "getSelf", key: keyPush},
	{op: "getStats"},
	{op: "push", body: `{"client":"alice/laptop","data":{"badge":1}}`, save: "queued=results.0.id"},
	{op: "getClientQueue", path: "alice/laptop", query: "limit=1&wait=30"},
	{op: "getClientQueue", path: "c-unknown", status: 404, code: "not_found"},
	{op: "getUserClientQueue", path: "alice laptop", query: "after={{queued}}"},
	{op: "getUserClientQueue", path: "alice tablet", status: 404, code: "not_found"},
	{op: "getChannelHistory", path: "news", query: "after=0&wait=1"},
	{op: "getChannelHistory", path: "news", query: "wait=31", status: 400, code: "bad_request"},
}
