package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/broker/api/spec"
	"switchboard/kit/kittest"
)

// methodStep is a request of the client alice/phone. {{name}} stands for a saved value.
type methodStep struct {
	method, data string
	code         string // of the error; "" for a reply
	save         string // as in step
}

// methodSteps call every method with every member that the document has.
var methodSteps = []methodStep{
	{method: "room.create", data: `{"id":"arena","mode":"duel","name":"Arena","visibility":"private","region":"eu","capacity":2,"app_version":"1","data":{"map":3},"nickname":"Al"}`, save: "version=version code=code"},
	{method: "room.create", data: `{"key":"k1","mode":"duel"}`, save: "second=id"},
	{method: "room.create", data: `{"mode":"duel","owner":"bob"}`, code: "forbidden"},
	{method: "room.get", data: `{"room":"arena"}`},
	{method: "room.patch", data: `{"room":"arena","version":{{version}},"name":"Big Arena","region":"us","locked":false,"app_version":"2","data":null,"owner":1}`},
	{method: "room.patch", data: `{"room":"arena","version":1}`, code: "conflict"},
	{method: "room.join", data: `{"room":"arena","nickname":"Al","code":"{{code}}"}`},
	{method: "room.lock", data: `{"room":"arena","locked":false}`},
	{method: "room.list", data: `{"mode":"duel","status":"waiting","region":"eu","visibility":"public","free":1,"order":"created","desc":true,"from":0,"to":9000000000000,"limit":1}`},
	{method: "room.list", data: `{"cursor":"0:","limit":0}`},
	{method: "room.mine", data: `{"cursor":"0:","limit":10}`},
	{method: "room.quick", data: `{"mode":"duel","region":"us","nickname":"Al","name":"Quick","app_version":"1","data":1}`},
	{method: "room.start", data: `{"room":"arena"}`},
	{method: "room.finish", data: `{"room":"arena"}`},
	{method: "room.kick", data: `{"room":"{{second}}","n":1}`},
	{method: "room.leave", data: `{"room":"arena"}`},

	{method: "hold.hold", data: `{"resource":"play-7","id":"order-1","seats":["A1"],"hold_ms":50000,"durable":false}`},
	{method: "hold.hold", data: `{"resource":"shirts","key":"k1","count":1}`},
	{method: "hold.renew", data: `{"resource":"play-7","id":"order-1","durable":false}`},
	{method: "hold.get", data: `{"resource":"play-7","id":"order-1"}`},
	{method: "hold.mine", data: `{"resource":"play-7"}`},
	{method: "hold.confirm", data: `{"resource":"play-7","id":"order-1","durable":false}`},
	{method: "hold.release", data: `{"resource":"play-7","id":"order-1","durable":false}`},
	{method: "hold.sell", data: `{"resource":"play-7","id":"order-2","seats":["A2"],"durable":false}`},
	{method: "hold.sell", data: `{"resource":"shirts","key":"k2","count":1}`},
	{method: "hold.resources", data: `{"resources":["play-7","nowhere"]}`},

	{method: "board.submit", data: `{"board":"open","score":1500,"operation":"game-1"}`},
	{method: "board.submit", data: `{"board":"open","score":1500,"key":"game-2"}`},
	{method: "board.submit", data: `{"board":"weekly","score":1500,"season":"x"}`, code: "forbidden"},
	{method: "board.top", data: `{"board":"open","offset":0,"limit":3}`},
	{method: "board.around", data: `{"board":"open","player":"alice","limit":3}`},
	{method: "board.top", data: `{"board":"open","cursor":"0"}`},
	{method: "board.top", data: `{"board":"weekly","season":"previous"}`},
	{method: "board.around", data: `{"board":"open"}`},
	{method: "board.around", data: `{"board":"weekly","season":"previous"}`, code: "not_found"},
	{method: "board.rank", data: `{"board":"open","player":"alice"}`},
	{method: "board.rank", data: `{"board":"weekly","season":"previous"}`, code: "not_found"},

	{method: "avatar.create", data: `{"name":"Zoe","figure":"elf","data":{"level":3}}`, save: "avatar=id version=version"},
	{method: "avatar.create", data: `{"key":"k1","name":"Mia"}`},
	{method: "avatar.list", data: `{"cursor":"0:","limit":10}`},
	{method: "avatar.patch", data: `{"avatar":"{{avatar}}","version":{{version}},"name":"Zoey","figure":"orc","data":null}`},
	{method: "scene.enter", data: `{"avatar":"{{avatar}}","scene":"town"}`},
	{method: "scene.transfer", data: `{"avatar":"{{avatar}}","scene":"town","from":"town"}`},
	{method: "scene.list", data: `{"world":"earth","status":"open","limit":10}`},
	{method: "scene.list", data: `{"world":"earth","cursor":"0:"}`},
	{method: "scene.get", data: `{"scene":"town"}`, save: "version=version"},
	{method: "scene.get", data: `{"scene":"town","cursor":"zoe"}`},
	{method: "avatar.delete", data: `{"avatar":"{{avatar}}","version":1}`, code: "conflict"},
	{method: "avatar.delete", data: `{"avatar":"{{avatar}}"}`},
}

// caller calls methods as a client.
type caller struct {
	*runner
	lines *lines
	ref   int
}

// newCaller starts a broker and connects alice/phone. The broker has a show, a product and a scene.
func newCaller(t *testing.T) *caller {
	b := startBroker(t, kittest.NewMemory(), func(o *broker.Options) { o.Limits.PushRate = 0 })
	r := newRunner(t, b, map[string]map[int]bool{})
	r.play([]step{
		{op: "putResource", path: "play-7", body: `{"seats":["A1..A20"],"hold_ms":60000}`},
		{op: "putResource", path: "shirts", body: `{"capacity":20}`},
		{op: "createScene", body: `{"id":"town","world":"earth","name":"Town"}`},
	})
	// A type with a package, such as kit.Player, is for clients, too, which see less than a backend.
	r.document = parse(t, spec.OpenAPI(), true)
	requireTyped(r.document.root, func(name string) bool { return strings.Contains(name, ".") })
	return &caller{r, r.connect(`{"type":"connect","client":"phone","token":"` + token(t, "alice", "") + `"}`), 0}
}

// call calls a method, and returns the code of the error, or "", and the whole answer.
func (c *caller) call(method, data string) (code string, answer []byte) {
	c.t.Helper()
	c.ref++
	c.lines.send(`{"type":"request","ref":` + strconv.Itoa(c.ref) + `,"method":"` + method + `","data":` + data + `}`)
	for {
		answer = c.lines.nextText()
		if textAt(answer, "ref") == strconv.Itoa(c.ref) {
			return textAt(answer, "code"), slices.Clone(answer)
		}
		if textAt(answer, "type") == "ping" {
			c.lines.send(`{"type":"pong"}`)
		}
	}
}

// method returns the pointer to the description of a method.
func method(name string) pointer { return pointer("").at("x-methods", name) }

// TestMethods calls every method of the document, and compares data and replies with it. A broker
// has no other methods.
func TestMethods(t *testing.T) {
	c := newCaller(t)
	described, _ := c.document.root["x-methods"].(object)
	if names := slices.Sorted(maps.Keys(described)); !slices.Equal(names, c.broker.Methods()) {
		t.Errorf("the document has the methods %v, the broker %v", names, c.broker.Methods())
	}
	called := map[string]bool{}
	for _, s := range methodSteps {
		data := c.fill(s.data)
		if err := c.document.check(t, method(s.method).at("data"), []byte(data)); err != nil && s.code == "" {
			t.Errorf("%s: %s: %v", s.method, data, err)
		}
		code, answer := c.call(s.method, data)
		if code != s.code {
			t.Fatalf("%s: %s: %s, want the code %q", s.method, data, answer, s.code)
		}
		if s.code != "" {
			continue
		}
		called[s.method] = true
		var reply struct{ Data json.RawMessage }
		if err := json.Unmarshal(answer, &reply); err != nil {
			t.Fatal(err)
		}
		if err := c.document.check(t, method(s.method).at("reply"), reply.Data); err != nil {
			t.Errorf("%s: %s: %v", s.method, answer, err)
		}
		c.save(s.save, reply.Data)
	}
	for name := range described {
		if !called[name] {
			t.Errorf("no step calls %s", name)
		}
	}
}

// save stores values of an answer for later steps.
func (c *caller) save(save string, answer []byte) {
	for pair := range strings.FieldsSeq(save) {
		name, path, _ := strings.Cut(pair, "=")
		c.saved[name] = textAt(answer, path)
	}
}

// TestRefusedData is like TestRefusedBodies, for the data of methods.
func TestRefusedData(t *testing.T) {
	c, sent := newCaller(t), map[string]bool{}
	for _, s := range methodSteps {
		data := c.fill(s.data)
		for _, path := range membersOf(data) {
			sent[s.method+path] = true
		}
		c.eachMutation(s, false, func(m mutation, code string, answer []byte) {
			if code == "" || !m.named(answer) {
				t.Errorf("%s: %s %s: %s: %s", s.method, m.member, m.kind, m.body, answer)
			}
		})
		code, answer := c.call(s.method, data)
		if code != s.code {
			t.Fatalf("%s: %s: %s", s.method, data, answer)
		}
		var reply struct{ Data json.RawMessage }
		_ = json.Unmarshal(answer, &reply) // TestMethods checks it
		c.save(s.save, reply.Data)
	}
	for name := range c.document.object("/x-methods") {
		for _, path := range c.document.members(method(name).at("data"), "") {
			if !sent[name+path] && path != "/owner" { // of room.create, only for the backend
				t.Errorf("%s: no step has the member %s", name, path)
			}
		}
	}
}

// TestAcceptedData is like TestAcceptedBodies, for the data of methods.
func TestAcceptedData(t *testing.T) {
	c := newCaller(t)
	for _, s := range methodSteps {
		_, answer := c.call(s.method, c.fill(s.data))
		var reply struct{ Data json.RawMessage }
		_ = json.Unmarshal(answer, &reply)
		c.save(s.save, reply.Data)
		c.eachMutation(s, true, func(m mutation, code string, answer []byte) {
			if code == "bad_request" {
				t.Errorf("%s: %s %s: %s: %s", s.method, m.member, m.kind, m.body, answer)
			}
		})
	}
}

// eachMutation calls the method of a step with the changes of its data that fit the document, or
// with the others.
func (c *caller) eachMutation(s methodStep, valid bool, check func(m mutation, code string, answer []byte)) {
	at := method(s.method).at("data")
	free := func(data string) bool { return c.document.check(c.t, at, []byte(data)) == nil }
	for _, m := range mutations(c.fill(s.data), free) {
		if c.document.fits(c.t, at, m) == valid {
			code, answer := c.call(s.method, m.body)
			check(m, code, answer)
		}
	}
}

// TestMethodExamples compares the example of each method with its data.
func TestMethodExamples(t *testing.T) {
	d := parse(t, spec.OpenAPI(), true)
	for name := range d.object("/x-methods") {
		example, _ := json.Marshal(d.get(method(name).at("example")))
		if err := d.check(t, method(name).at("data"), example); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSpentBudgets spends the budgets of a user, and checks that the document names the error of
// each method that is refused then.
func TestSpentBudgets(t *testing.T) {
	c := newCaller(t)
	for _, spent := range []struct {
		method, data string // %d stands for the number of the call
		then         string // another method that is refused
	}{
		{"room.create", `{"id":"r%d","mode":"duel","visibility":"private"}`, "room.quick"},
		{"board.submit", `{"board":"level-%d","score":1}`, ""},
		{"avatar.create", `{"key":"k%d","name":"Zoe"}`, ""},
	} {
		made := 0
		for {
			code, answer := c.call(spent.method, fmt.Sprintf(spent.data, made))
			if code == "full" {
				c.wantNamed(spent.method, answer)
				break
			}
			if made++; code != "" || made > 100 {
				t.Fatalf("%s: %s, after %d", spent.method, answer, made)
			}
		}
		if spent.then != "" {
			code, answer := c.call(spent.then, `{"mode":"duel"}`)
			if code != "full" {
				t.Errorf("%s: %s", spent.then, answer)
			}
			c.wantNamed(spent.then, answer)
		}
	}
}

// wantNamed checks that the document names the code of a refusal of a method.
func (c *caller) wantNamed(name string, answer []byte) {
	c.t.Helper()
	of, _ := c.document.object("/x-methods")[name].(object)
	codes, _ := of["x-error-codes"].([]any)
	if code := textAt(answer, "code"); !slices.Contains(codes, any(code)) {
		c.t.Errorf("%s is refused with %s; the document has the codes %v", name, code, codes)
	}
}
