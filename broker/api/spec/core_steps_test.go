package spec_test

import "strings"

// coreSteps are calls of the broker without the kit. The client alice/phone is connected, follows
// the channel news, and has sent a request with the ref 7.
var coreSteps = []step{
	{op: "getIndex"}, {op: "getHealth"}, {op: "getReadiness"}, {op: "getMetrics"},
	{op: "getOpenAPI"}, {op: "getOpenAPIAsJSON"}, {op: "getAsyncAPI"},

	// Pushes to each kind of target.
	{op: "push", body: `{"channel":"news","data":{"title":"hi"}}`, save: "id=results.0.id"},
	{op: "push", body: `{"channels":["news","a b"],"data":1,"key":"k1"}`, whole: true},
	{op: "push", body: `{"channels":["news"],"data":1,"key":"k1"}`},
	{op: "push", body: `{"user":"alice","data":{"badge":3},"ttl":86400,"first":true,"exclude":"alice/desk"}`},
	{op: "push", body: `{"users":["alice","bob"],"data":{"badge":3}}`},
	{op: "push", body: `{"client":"alice/phone","data":null}`},
	{op: "push", body: `{"clients":["alice/phone","c-1"],"data":"x","durable":false}`},
	{op: "push", body: `{"all":true,"data":"maintenance at noon"}`},
	{op: "push", body: `{"data":1}`, status: 400, code: "bad_request"},
	{op: "push", body: `{"channel":"$all","data":1}`, status: 403, code: "forbidden"},
	{op: "push", body: `{"channel":"news","data":"` + strings.Repeat("x", 70_000) + `"}`, status: 413, code: "too_large"},

	// Changes of fields.
	{op: "push", body: `{"channel":"room-7","set":{"turn":"amy","seat/A1":{"n":1}},"add":{"moves":1},"ttl":60,"data":{"move":"e4"}}`, save: "turn=results.0.id"},
	{op: "push", body: `{"channel":"room-7","set":{"turn":"bob"},"if":{"turn":{{turn}},"gone":0,"moves":true},"of":{"turn":"seat/A1"},"own":false}`},
	{op: "push", body: `{"channel":"room-7","del":["x"],"touch":["moves"],"ttl":120}`},
	{op: "push", body: `{"channel":"room-7","set":{"turn":"cat"},"if":{"turn":{{turn}}}}`, status: 409, code: "conflict"},
	{op: "push", body: `{"channel":"room-7","add":{"moves":{"by":5,"min":0,"max":3}}}`, status: 409, code: "limit"},
	{op: "push", body: `{"channel":"room-7","touch":["absent"],"ttl":5}`, status: 404, code: "not_found"},
	{op: "push", body: `{"channel":"room-7","set":{"$max/seat/":1}}`},
	{op: "push", body: `{"channel":"room-7","set":{"seat/A2":1,"seat/A3":1}}`, status: 409, code: "full"},

	{op: "pushBatch", body: `{"messages":[{"channel":"news","data":1},{"channel":"room-7","add":{"moves":1}},{"user":"unknown","data":1}]}`},
	{op: "pushBatch", body: `{"messages":[{"channel":"news","data":1,"key":"k3"},{"channel":"news","data":1,"key":"k4"}]}`},
	{op: "pushBatch", body: `{"messages":[{"channels":["news"],"data":1,"key":"k2","durable":false},{"users":["alice"],"data":1,"ttl":60,"first":true,"exclude":"alice/desk"},` +
		`{"client":"alice/phone","data":1},{"clients":["alice/phone"],"data":1},{"all":true,"data":1},` +
		`{"channel":"room-9","set":{"a":1,"b":1},"of":{"b":"a"},"if":{"a":0},"own":false},{"channel":"room-9","touch":["a"],"ttl":60},{"channel":"room-9","del":["a"]}]}`},
	{op: "pushBatch", whole: true, body: `{"messages":[{"channel":"room-7","set":{"turn":1},"if":{"turn":0}},{"channels":["a b"],"data":1}]}`},

	// Reads.
	{op: "listChannels", query: "prefix=ne&limit=1"},
	{op: "getChannel", path: "news"},
	{op: "getChannelHistory", path: "news", query: "after=0&limit=2"},
	{op: "getChannelHistory", path: "room-7"},
	{op: "getChannelPresence", path: "news"},
	{op: "getChannelPresence", path: "news", query: "limit=0"},
	{op: "getChannelState", path: "room-7", query: "limit=1", save: "cursor=cursor"},
	{op: "getChannelState", path: "room-7", query: "prefix=t&cursor={{cursor}}"},
	{op: "queryStates", body: `{"channels":["room-7","room-8"],"fields":["turn","$room"]}`},
	{op: "getClient", path: "alice/phone"},
	{op: "getClient", path: "c-unknown", status: 404, code: "not_found"},
	{op: "getUserClient", path: "alice phone"},
	{op: "getUserClient", path: "alice tablet", status: 404, code: "not_found"},
	{op: "listOnlineUsers"},
	{op: "listOnlineUsers", query: "limit=0"},
	{op: "getUser", path: "alice"},
	{op: "getUser", path: "unknown"},
	{op: "queryUsers", body: `{"users":["alice","bob"]}`},
	{op: "listServers"},

	{op: "eraseMessage", body: `{"channel":"news","id":1,"durable":false}`},
	{op: "eraseMessage", body: `{"channel":"news","id":9007199254740991}`, status: 404, code: "not_found"},
	{op: "eraseMessage", body: `{"channel":"$user/amy","id":1}`, status: 403, code: "forbidden"},
	{op: "notifyQueues", body: `{"channels":["news"],"clients":["alice/phone"]}`},
	{op: "replyToRequest", body: `{"client":"alice/phone","ref":7,"data":{"price":12}}`},
	{op: "replyToRequest", body: `{"client":"alice/tablet","ref":7,"data":null}`, status: 404, code: "not_found"},

	// Streams.
	{op: "openStream", query: "channel=news&client=tab&token={{token}}"},
	{op: "openStream", query: "channel=a%20b&token={{token}}", status: 400, code: "bad_request"},
	{op: "openStream", query: "token=nonsense", status: 401, code: "unauthorized"},
	{op: "openStream", query: "client=tab&token={{fixed}}", status: 403, code: "forbidden"},
	{op: "acknowledgeStream", query: "client=tab&token={{token}}", body: "{{event}}", status: 204},
	{op: "acknowledgeStream", query: "client=tab&token={{token}}", body: "nonsense", status: 400, code: "bad_request"},
	{op: "acknowledgeStream", query: "client=tab&token=nonsense", body: "{{event}}", status: 401, code: "unauthorized"},
	{op: "acknowledgeStream", query: "client=tab&token={{fixed}}", body: "{{event}}", status: 403, code: "forbidden"},
	{op: "acknowledgeStream", query: "client=tab&token={{token}}", body: strings.Repeat("x", 9<<10), status: 413, code: "too_large"},
}

// rateSteps exceed the rate of the key loud.
var rateSteps = []step{
	{op: "pushBatch", key: keyLoud, body: `{"messages":[` + strings.Repeat(`{"channel":"news","data":1},`, 999) + `{"channel":"news","data":1}]}`},
	{op: "push", key: keyLoud, body: `{"channel":"news","data":1}`, status: 429, code: "rate_limited"},
	{op: "pushBatch", key: keyLoud, body: `{"messages":[{"channel":"news","data":1}]}`, status: 429, code: "rate_limited"},
}

// lastSteps end what the others need.
var lastSteps = []step{
	{op: "readBudget", path: "alice"},
	{op: "forgetUser", path: "alice"},
	{op: "revokeUserTokens", path: "carl"},
	{op: "revokeUserTokens", path: "carl", body: `{"before":1795330765,"durable":false}`, status: 400, code: "bad_request"},
	{op: "revokeUserTokens", path: "carl", body: `{"before":1704067200000,"durable":false}`},
	{op: "revokeClientTokens", path: "carl/phone", body: `{"before":1704067200000,"durable":false}`},
	{op: "revokeClientTokens", path: "c-7QK2", status: 400, code: "bad_request"},
	{op: "revokeUserClientTokens", path: "carl phone", body: `{"before":1704067200000,"durable":false}`},
	{op: "subscribeUser", path: "alice", body: `{"channels":["team:7","team:8"],"after":0}`},
	{op: "subscribeUser", path: "alice", body: `{"channels":["$all"]}`, status: 403, code: "forbidden"},
	{op: "subscribeUser", path: "alice", body: `{"channels":[]}`, status: 400, code: "bad_request"},
	{op: "subscribeUser", path: "alice", body: `{"channels":["a","b"],"after":5}`, status: 400, code: "bad_request"},
	{op: "subscribeUser", path: "alice", body: `{"channels":["n"` + strings.Repeat(`,"n"`, 64) + `]}`, status: 413, code: "too_large"},
	{op: "subscribeClient", path: "alice/phone", body: `{"channels":["team:7"],"after":5}`},
	{op: "subscribeUserClient", path: "alice phone", body: `{"channels":["team:7"],"after":0}`},
	{op: "unsubscribeUser", path: "alice", body: `{"channels":["team:7"]}`},
	{op: "unsubscribeClient", path: "c-7QK2", body: `{"channels":["team:7"]}`},
	{op: "unsubscribeUserClient", path: "alice phone", body: `{"channels":["team:7"]}`},
	{op: "disconnectClient", path: "alice/phone"},
	{op: "disconnectUserClient", path: "alice phone"},
	{op: "disconnectUser", path: "alice"},
}
