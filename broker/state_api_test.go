package broker_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/queue"
)

// TestConditionsOverHTTP checks each condition and each refusal, with the current values.
func TestConditionsOverHTTP(t *testing.T) {
	forEachStateStore(t, nil, func(_ *testing.T, c *stateCaller) {
		c.run([][2]string{
			{`{"channel":"r:1","set":{"turn":"bob","seat/A1":{"n":1}}}`, `200 {"results":[{"channel":"r:1","id":#1,"servers":0}]}`},
			{`{"channel":"r:1","set":{"turn":"amy"},"if":{"turn":#1}}`, `200 {"results":[{"channel":"r:1","id":#2,"servers":0}]}`},
			{`{"channel":"r:1","set":{"turn":"eve"},"if":{"turn":#1,"seat/A1":#1}}`,
				`409 {"error":{"code":"conflict","message":"field turn: it does not meet the condition","fields":{"turn":[#2,"amy"]}}}`},
			{`{"channel":"r:1","set":{"turn":"eve"},"if":{"turn":0,"x":true,"y":#1}}`,
				`409 {"error":{"code":"conflict","message":"field turn: it does not meet the condition","fields":{"turn":[#2,"amy"],"x":null,"y":null}}}`},
			{`{"channel":"r:1","data":{"only":"data"},"if":{"x":0,"turn":true}}`, `200 {"results":[{"channel":"r:1","id":#3,"servers":0}]}`},
			{`{"channel":"r:1","add":{"n":5,"m":{"by":-2,"min":-2}}}`, `200 {"results":[{"channel":"r:1","id":#4,"servers":0,"fields":{"m":-2,"n":5}}]}`},
			{`{"channel":"r:1","add":{"n":{"by":-6,"min":0}},"set":{"turn":"eve"}}`,
				`409 {"error":{"code":"limit","message":"field n: the result -1 is out of bounds","fields":{"n":[#4,5]}}}`},
			{`{"channel":"r:1","add":{"turn":1}}`,
				`400 {"error":{"code":"bad_request","message":"field turn: its value is not a whole number","fields":{"turn":[#2,"amy"]}}}`},
			{`{"channel":"r:1","touch":["x"]}`, `404 {"error":{"code":"not_found","message":"field x: there is no such field","fields":{"x":null}}}`},
			{`{"channel":"r:1","set":{"$max/seat/":1}}`, `200 {"results":[{"channel":"r:1","id":#5,"servers":0}]}`},
			{`{"channel":"r:1","set":{"seat/A2":2}}`,
				`409 {"error":{"code":"full","message":"group seat/ would have 2 fields, at most 1 are allowed","fields":{"seat/A1":[#1,{"n":1}]},"group":"seat/","max":1}}`},
			{`{"channel":"r:1","set":{"p/1":1},"of":{"p/1":"seat/B"}}`,
				`404 {"error":{"code":"not_found","message":"field p/1: its parent seat/B does not exist","fields":{"p/1":null}}}`},
			{`{"channel":"r:1","set":{"p/1":1,"$$u":"amy"},"of":{"p/1":"seat/A1"},"ttl":3600}`, `200 {"results":[{"channel":"r:1","id":#6,"servers":0}]}`},
			{`GET /v1/channels/r:1/state`, `200 {"channel":"r:1","id":#6,"fields":{"$$u":[#6,"amy",#time],"$max/seat/":[#5,1],` +
				`"m":[#4,-2],"n":[#4,5],"p/1":[#6,1,#time],"seat/A1":[#1,{"n":1}],"turn":[#2,"amy"]}}`},
			{`{"channel":"r:1","touch":["p/1"]}`, `200 {"results":[{"channel":"r:1","id":#7,"servers":0}]}`},
			{`GET /v1/channels/r:1/state?prefix=p/`, `200 {"channel":"r:1","id":#7,"fields":{"p/1":[#6,1]}}`},
			{`{"channel":"r:1","del":["seat/A1","absent"],"data":"bye"}`, `200 {"results":[{"channel":"r:1","id":#8,"servers":0}]}`},
			{`GET /v1/channels/r:1/state?prefix=p/`, `200 {"channel":"r:1","id":#8,"fields":{}}`},
			{`GET /v1/channels/r:1/history?after=#2&limit=2`, `200 {"channel":"r:1","messages":[{"id":#3,"data":{"only":"data"}},` +
				`{"id":#4,"set":{"m":-2,"n":5}}],"more":true,"recovered":true,"id":#4}`},
		})
	})
}

// TestKeysOfChanges checks that a repeated key returns the first results, whatever has changed
// since, and that a refusal is not remembered.
func TestKeysOfChanges(t *testing.T) {
	forEachStateStore(t, nil, func(_ *testing.T, c *stateCaller) {
		c.run([][2]string{
			{`{"channel":"k","add":{"n":1},"key":"a"}`, `200 {"results":[{"channel":"k","id":#1,"servers":0,"fields":{"n":1}}]}`},
			{`{"channel":"k","add":{"n":1}}`, `200 {"results":[{"channel":"k","id":#2,"servers":0,"fields":{"n":2}}]}`},
			{`{"channel":"k","add":{"n":1},"if":{"n":#1},"key":"a"}`, `200 {"results":[{"channel":"k","id":#1,"servers":0,"duplicate":true,"fields":{"n":1}}]}`},
			{`{"channel":"k","set":{"x":1},"if":{"x":true},"key":"b"}`,
				`409 {"error":{"code":"conflict","message":"field x: it does not meet the condition","fields":{"x":null}}}`},
			{`{"channel":"k","set":{"x":1},"key":"b"}`, `200 {"results":[{"channel":"k","id":#3,"servers":0}]}`},
			{`{"channel":"k","del":["x"],"key":"b"}`, `200 {"results":[{"channel":"k","id":#3,"servers":0,"duplicate":true}]}`},
			{`{"channel":"other","add":{"n":1},"key":"a"}`, `200 {"results":[{"channel":"other","id":#_,"servers":0,"fields":{"n":1}}]}`},
		})
	})
}

// TestBatchOfChanges checks that a refused item stops no other one, and that the items of a channel
// keep their order.
func TestBatchOfChanges(t *testing.T) {
	forEachStateStore(t, nil, func(_ *testing.T, c *stateCaller) {
		c.run([][2]string{{
			`POST /v1/push/batch {"messages":[{"channel":"b","add":{"n":1}},{"channel":"b","add":{"n":{"by":9,"max":9}}},{"channel":"b","data":1},` +
				`{"channel":"b","set":{"n":7}},{"channel":"b","set":{"n":8},"if":{"n":true,"z":true}},{"channel":"b","add":{"n":{"by":1}}},` +
				`{"channel":"b","set":{"n":0},"own":true},{"channel":"b","del":["n"],"data":"end"}]}`,
			`200 {"results":[{"results":[{"channel":"b","id":#1,"servers":0,"fields":{"n":1}}]},` +
				`{"results":[{"channel":"b","error":{"code":"limit","message":"field n: the result 10 is out of bounds","fields":{"n":[#1,1]}}}]},` +
				`{"results":[{"channel":"b","id":#2,"servers":0}]},{"results":[{"channel":"b","id":#3,"servers":0}]},` +
				`{"results":[{"channel":"b","error":{"code":"conflict","message":"field z: it does not meet the condition","fields":{"z":null}}}]},` +
				`{"results":[{"channel":"b","id":#4,"servers":0,"fields":{"n":8}}]},` +
				`{"error":{"code":"bad_request","message":"messages[6]: own: only a client that is connected owns fields, not the backend"}},` +
				`{"results":[{"channel":"b","id":#5,"servers":0}]}]}`,
		}, {
			`{"channels":["b","c"],"set":{"n":1},"if":{"n":0}}`,
			`200 {"results":[{"channel":"b","id":#6,"servers":0},{"channel":"c","id":#_,"servers":0}]}`,
		}, {
			`{"channels":["c","d"],"set":{"n":2},"if":{"n":0}}`,
			`200 {"results":[{"channel":"c","error":{"code":"conflict","message":"field n: it does not meet the condition","fields":{"n":[#_,1]}}},` +
				`{"channel":"d","id":#_,"servers":0}]}`,
		}})
	})
}

// TestLargeRefusalsInABatch checks that the answer to a batch shows about 1 MiB of current fields.
func TestLargeRefusalsInABatch(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), nil)
	c := newStateCaller(t, i)
	large := strings.Repeat("x", 15_000)
	c.run([][2]string{{`{"channel":"l","set":{"a":"` + large + `","b":"` + large + `"}}`, `200 {"results":[{"channel":"l","id":#1,"servers":0}]}`}})
	refused := `{"channel":"l","data":1,"if":{"a":0,"b":0}}`
	_, answer := c.call(`POST /v1/push/batch {"messages":[` + refused + strings.Repeat(","+refused, 99) + `]}`)
	values, ids := strings.Count(answer, large), strings.Count(answer, `"fields":{"a":[#1],"b":[#1]}`)
	if values != 70 || ids != 65 {
		t.Errorf("%d values, and %d refusals with ids alone; want 70 and 65", values, ids)
	}
}

// TestPagesOfState checks the pages of a state, and queries of several channels.
func TestPagesOfState(t *testing.T) {
	t.Parallel()
	forEachStateStore(t, nil, func(t *testing.T, c *stateCaller) {
		large := strings.Repeat("x", 15_000)
		c.run([][2]string{
			{`{"channel":"p","set":{"a/1":1,"a/2":2,"a/3":3,"b":4}}`, `200 {"results":[{"channel":"p","id":#1,"servers":0}]}`},
			{`GET /v1/channels/p/state?limit=2`, `200 {"channel":"p","id":#1,"fields":{"a/1":[#1,1],"a/2":[#1,2]},"cursor":"a/2"}`},
			{`GET /v1/channels/p/state?limit=2&cursor=a/2`, `200 {"channel":"p","id":#1,"fields":{"a/3":[#1,3],"b":[#1,4]}}`},
			{`GET /v1/channels/p/state?limit=2&prefix=a/&cursor=a/2`, `200 {"channel":"p","id":#1,"fields":{"a/3":[#1,3]}}`},
			{`GET /v1/channels/never/state`, `200 {"channel":"never","id":0,"fields":{}}`},
			{`POST /v1/state/query {"channels":["p","never","$all"],"fields":["b","$$x","a/3"]}`,
				`200 {"channels":[{"channel":"p","id":#1,"fields":{"b":[#1,4],"$$x":null,"a/3":[#1,3]}},` +
					`{"channel":"never","id":0,"fields":{"b":null,"$$x":null,"a/3":null}},` +
					`{"channel":"$all","id":0,"fields":{"b":null,"$$x":null,"a/3":null}}]}`},
		})
		c.ids = nil // two channels may use the same id
		c.run([][2]string{
			{`{"channel":"q","set":{"a":"` + large + `","b":"` + large + `"}}`, `200 {"results":[{"channel":"q","id":#1,"servers":0}]}`},
			{`{"channel":"q","set":{"c":"` + large + `"}}`, `200 {"results":[{"channel":"q","id":#2,"servers":0}]}`},
			{`GET /v1/channels/q/state`, `200 {"channel":"q","id":#2,"fields":{"a":[#1,"` + large + `"],"b":[#1,"` + large + `"]},"cursor":"b"}`},
			{`GET /v1/channels/q/state?cursor=b`, `200 {"channel":"q","id":#2,"fields":{"c":[#2,"` + large + `"]}}`},
			{`POST /v1/state/query {"channels":["q"],"fields":["a","b","c"]}`,
				`200 {"channels":[{"channel":"q","id":#2,"fields":{"a":[#1,"` + large + `"],"b":[#1,"` + large + `"],"c":[#2]}}]}`},
			{`{"channel":"q","del":["a"],"if":{"a":0,"b":0,"c":0}}`, `409 {"error":{"code":"conflict","message":"field a: it does not meet the condition",` +
				`"fields":{"a":[#1,"` + large + `"],"b":[#1,"` + large + `"],"c":[#2]}}}`},
		})
	})
}

// TestPagesOfManyFields checks that the pages hold all fields once and in order, and that a page
// has at most 32 KiB of fields, although its limit allows more of them.
func TestPagesOfManyFields(t *testing.T) {
	forEachStateStore(t, nil, func(t *testing.T, c *stateCaller) {
		var want []string
		for range 16 {
			var set []string
			for range 64 {
				want = append(want, fmt.Sprintf("field/%04d", len(want)))
				set = append(set, fmt.Sprintf(`%q:"a value of a field"`, want[len(want)-1]))
			}
			c.expect(200, `"id"`, "POST", "/v1/push", "", `{"channel":"m","set":{`+strings.Join(set, ",")+`}}`)
		}
		var got []string
		pages := 0
		for cursor := ""; cursor != "" || pages == 0; pages++ {
			_, text, err := c.caller.call("GET", "/v1/channels/m/state?limit=1000&cursor="+cursor, "", "")
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > 33<<10 {
				t.Errorf("a page of %d bytes", len(text))
			}
			page := decode(t, []byte(text))
			got = append(got, slices.Sorted(maps.Keys(page["fields"].(object)))...)
			cursor, _ = page["cursor"].(string)
		}
		if !slices.Equal(got, want) || pages < 2 {
			t.Errorf("%d fields in %d pages, want %d fields", len(got), pages, len(want))
		}
	})
}

// TestSubscribersReceiveChanges checks that the changes of a push reach a subscriber on the wire.
func TestSubscribersReceiveChanges(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	reader := dialers["tcp"](t, i)
	reader.connect("c", "")
	reader.subscribe("news")
	c := newStateCaller(t, i)
	c.run([][2]string{
		{`{"channel":"news","set":{"a":1}}`, `200 {"results":[{"channel":"news","id":#1,"servers":1}]}`},
		{`{"channel":"news","set":{"a":2},"data":{"title":"hi"}}`, `200 {"results":[{"channel":"news","id":#2,"servers":1}]}`},
	})
	reader.expect(object{"type": "message", "channel": "news", "data": object{"title": "hi"}}) // it did not ask for the state
}

// TestBadChanges checks that the error about bad input names the field and, in a batch, the
// message.
func TestBadChanges(t *testing.T) {
	change := func(o *broker.Options) {
		o.Limits.Operations, o.Limits.FieldBytes, o.Limits.Message = 3, 20, 60
	}
	forEachStateStore(t, change, func(t *testing.T, c *stateCaller) {
		for push, want := range map[string]string{
			`{"channel":"a"}`:                                         `400 bad_request data: missing`,
			`{"channel":"a","set":{}}`:                                `400 bad_request data: missing`,
			`{"channel":"a","set":5}`:                                 `400 bad_request set: number does not fit, expected an object`,
			`{"channel":"a","set":{"x":1,"x":2}}`:                     `400 bad_request field x: it appears twice`,
			`{"channel":"a","set":{"x":1},"del":["x"]}`:               `400 bad_request field x: it appears twice`,
			`{"channel":"a","set":{"a b":1}}`:                         `400 bad_request field "a b": character ' ' at byte 1 of the name is not allowed`,
			`{"channel":"a","set":{"":1}}`:                            `400 bad_request field: the name is empty`,
			`{"channel":"a","set":{"x":"01234567890123456789"}}`:      `413 too_large field x: 22 bytes, at most 20 are allowed`,
			`{"channel":"a","set":{"a":1,"b":2},"del":["c","d"]}`:     `413 too_large 4 fields are changed, at most 3 are allowed`,
			`{"channel":"a","data":1,"if":{"a":0,"b":0,"c":0,"d":0}}`: `413 too_large if: 4 conditions, at most 3 are allowed`,
			`{"channel":"a","data":"` + strings.Repeat("x", 40) + `","set":{"x":"01234567890123456"}}`: `413 too_large data and fields: 62 bytes, at most 60 are allowed`,
			`{"channel":"a","del":"x"}`:                                                                   `400 bad_request del: string does not fit, expected a list`,
			`{"channel":"a","add":{"n":1.5}}`:                                                             `400 bad_request field n: add: 1.5 is not a whole number`,
			`{"channel":"a","add":{"n":{"min":1}}}`:                                                       `400 bad_request field n: add: by is missing`,
			`{"channel":"a","add":{"n":{"by":1,"most":1}}}`:                                               `400 bad_request field n: add: "most" is none of by, min and max`,
			`{"channel":"a","set":{"n":1},"if":{"n":-1}}`:                                                 `400 bad_request if: field n: -1 is neither an id nor 0 nor true`,
			`{"channel":"a","set":{"n":1},"ttl":-1}`:                                                      `400 bad_request ttl: -1 is not within 0 and`,
			`{"channel":"a","set":{"n":1},"own":true}`:                                                    `400 bad_request own: only a client that is connected owns fields`,
			`{"channel":"a","set":{"n":1},"of":{"m":"x"}}`:                                                `400 bad_request of: field m is not set by this change`,
			`{"channel":"a","set":{"n":1},"of":{"n":"n"}}`:                                                `400 bad_request field n: it cannot be a part of itself`,
			`{"channel":"a","set":{"n":1},"of":{"n":1}}`:                                                  `400 bad_request of: number does not fit, expected a string`,
			`{"channel":"a","set":{"n":1},"notify_after":5}`:                                              `400 bad_request notify_after: only a push to users or clients has one`,
			`{"channel":"a","set":{"n":1},"key":"a b"}`:                                                   `400 bad_request key: character`,
			`{"channel":"$all","set":{"n":1}}`:                                                            `403 forbidden channel $all: it is a system channel`,
			`{"channel":"a b","set":{"n":1}}`:                                                             `400 bad_request channel: character`,
			`{"user":"u","data":1,"set":{"n":1}}`:                                                         `400 bad_request set: only a push to a channel changes fields`,
			`{"client":"c","data":1,"if":{"n":0}}`:                                                        `400 bad_request if: only a push to a channel changes fields`,
			`{"all":true,"data":1,"del":["n"]}`:                                                           `400 bad_request del: only a push to a channel changes fields`,
			`{"channel":"a","data":1,"ttl":5}`:                                                            `400 bad_request ttl: only a push to users or clients has one, or a push that changes fields`,
			`{"channel":"a","set":{"n":1},"unknown":1}`:                                                   `400 bad_request unknown field "unknown"`,
			`{"channel":"a","set":{"n":` + strings.Repeat("[", 65) + `1` + strings.Repeat("]", 65) + `}}`: `413 too_large field n`,
		} {
			status, answer := c.call(push)
			code, text, _ := strings.Cut(want[4:], " ")
			if got := fmt.Sprint(status); got != want[:3] || !contains(answer, code, text, "") {
				t.Errorf("%.80s: %d %s; want %s", push, status, answer, want)
			}
			_, answer = c.call(`POST /v1/push/batch {"messages":[{"channel":"ok","data":1},` + push + `]}`)
			if !contains(answer, code, text, "messages[1]: ") || strings.Count(answer, `"error"`) != 1 {
				t.Errorf("batch with %.80s: %s; want %s", push, answer, want)
			}
		}
		for call, want := range map[string]string{
			`GET /v1/channels/a%20b/state`:                                                              `400 channel: character`,
			`GET /v1/channels/a/state?prefix=a%20b`:                                                     `400 prefix: field`,
			`GET /v1/channels/a/state?cursor=a%20b`:                                                     `400 cursor: no earlier page returned it`,
			`GET /v1/channels/a/state?limit=0`:                                                          `400 limit: `,
			`GET /v1/channels/a/state?limit=1001`:                                                       `400 limit: `,
			`POST /v1/state/query {"channels":[],"fields":["a"]}`:                                       `400 channels: 0 names, between 1 and 100`,
			`POST /v1/state/query {"channels":["a"],"fields":[]}`:                                       `400 fields: 0 names, between 1 and 8`,
			`POST /v1/state/query {"channels":["a"],"fields":["a","b c"]}`:                              `400 fields[1]: field `,
			`POST /v1/state/query {"channels":["a"],"fields":["a","b","a"]}`:                            `400 fields[2]: field a: it appears twice`,
			`POST /v1/state/query {"channels":["a","b c"],"fields":["a"]}`:                              `400 channels[1]: channel: character`,
			`POST /v1/state/query {"channel":["a"],"fields":["a"]}`:                                     `400 unknown field`,
			`POST /v1/state/query {"channels":["a"` + strings.Repeat(`,"a"`, 100) + `],"fields":["a"]}`: `400 channels: 101 names`,
			`POST /v1/state/query {"channels":["a"],"fields":["1","2","3","4","5","6","7","8","9"]}`:    `400 fields: 9 names`,
		} {
			status, answer := c.call(call)
			if got := fmt.Sprint(status); got != want[:3] || !strings.Contains(answer, want[4:]) {
				t.Errorf("%.80s: %d %s; want %s", call, status, answer, want)
			}
		}
		if _, answer := c.call(`GET /v1/channels/a/state`); answer != `{"channel":"a","id":0,"fields":{}}` {
			t.Errorf("bad changes have changed the state: %s", answer)
		}
	})
}

// contains reports whether the answer has an error with the code, and a message that begins with
// before and text.
func contains(answer, code, text, before string) bool {
	return strings.Contains(answer, fmt.Sprintf(`{"code":%q,"message":"%s`, code, before+strings.ReplaceAll(text, `"`, `\"`)))
}

// TestLimitsOfStates checks the limits of a channel's state.
func TestLimitsOfStates(t *testing.T) {
	change := func(o *broker.Options) { o.Limits.Fields, o.Limits.StateBytes = 2, 40 }
	forEachStateStore(t, change, func(_ *testing.T, c *stateCaller) {
		c.run([][2]string{
			{`{"channel":"l","set":{"a":1,"b":2}}`, `200 {"results":[{"channel":"l","id":#1,"servers":0}]}`},
			{`{"channel":"l","set":{"c":3}}`,
				`409 {"error":{"code":"full","message":"field c: the channel would have 3 fields, at most 2 are allowed","fields":{"c":null},"max":2}}`},
			{`{"channel":"l","set":{"c":3},"del":["a"]}`, `200 {"results":[{"channel":"l","id":#2,"servers":0}]}`},
			{`{"channel":"l","set":{"b":"` + strings.Repeat("x", 40) + `"}}`,
				`413 {"error":{"code":"too_large","message":"the fields of the channel would have 45 bytes, at most 40 are allowed"}}`},
			{`{"channel":"m","set":{"a":1,"b":2,"c":3}}`,
				`409 {"error":{"code":"full","message":"field a: the channel would have 3 fields, at most 2 are allowed","fields":{"a":null},"max":2}}`},
		})
	})
}

// TestLeasesOverHTTP checks that an expired field is absent for readers and writers.
func TestLeasesOverHTTP(t *testing.T) {
	var now atomic.Int64 // Unix ms
	now.Store(1_790_000_000_000)
	i := start(t, memoryStore(queue.Options{Now: func() time.Time { return time.UnixMilli(now.Load()) }}), nil)
	c := newStateCaller(t, i)
	c.run([][2]string{
		{`{"channel":"l","set":{"a":1,"b":2},"ttl":0.5}`, `200 {"results":[{"channel":"l","id":#1,"servers":0}]}`},
		{`{"channel":"l","touch":["b"],"ttl":3}`, `200 {"results":[{"channel":"l","id":#2,"servers":0}]}`},
	})
	now.Add(500)
	c.run([][2]string{
		{`GET /v1/channels/l/state`, `200 {"channel":"l","id":#2,"fields":{"b":[#1,2,#time]}}`},
		{`{"channel":"l","set":{"a":2},"if":{"a":true}}`,
			`409 {"error":{"code":"conflict","message":"field a: it does not meet the condition","fields":{"a":null}}}`},
		{`{"channel":"l","set":{"a":2},"if":{"a":0}}`, `200 {"results":[{"channel":"l","id":#3,"servers":0}]}`},
	})
}

// TestDurableChangeInMemory: it is refused, as a durable message is.
func TestDurableChangeInMemory(t *testing.T) {
	c := newStateCaller(t, start(t, memoryStore(queue.Options{}), nil))
	c.run([][2]string{
		{`{"channel":"d","add":{"n":1},"durable":true}`,
			`400 {"error":{"code":"bad_request","message":"durable: this broker keeps messages in memory, where there are no replicas"}}`},
		{`GET /v1/channels/d/state`, `200 {"channel":"d","id":0,"fields":{}}`},
	})
}

// TestDurableChangeWithoutReplicas: the answer says that no replica confirmed the change, and shows
// its results.
func TestDurableChangeWithoutReplicas(t *testing.T) {
	t.Parallel()
	i, _, _ := startWithOwnRedis(t)
	i.awaitReady(t, http.StatusOK)
	c := newStateCaller(t, i)
	// This push loads the script. A durable call of an unknown script waits twice for a replica.
	c.expect(200, `"id"`, "POST", "/v1/push", "", `{"channel":"other","set":{"n":1}}`)
	unconfirmed := `{"code":"unavailable","message":"stored, but not confirmed by a replica in time; repeat the push with the same key to wait again"}`
	stored := `"results":[{"channel":"d","id":#1,"servers":0,"fields":{"n":1},"error":` + unconfirmed + `}]`
	c.run([][2]string{
		{`{"channel":"d","add":{"n":1},"durable":true,"key":"k"}`, `503 {` + stored + `,"error":` + unconfirmed + `}`},
		{`{"channel":"d","add":{"n":1},"durable":true,"key":"k"}`, `503 {` + strings.Replace(stored, `"fields"`, `"duplicate":true,"fields"`, 1) + `,"error":` + unconfirmed + `}`},
		{`POST /v1/push/batch {"messages":[{"channel":"d","set":{"n":9},"if":{"n":0},"durable":true},{"channel":"d","add":{"n":1},"durable":true}]}`,
			`200 {"results":[{"results":[{"channel":"d","error":{"code":"conflict","message":"field n: it does not meet the condition","fields":{"n":[#1,1]}}}]},` +
				`{"results":[{"channel":"d","id":#2,"servers":0,"fields":{"n":2},"error":` + unconfirmed + `}]}]}`},
	})
}
