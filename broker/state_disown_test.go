package broker_test

import (
	"testing"

	"switchboard/queue"
)

// TestBackendRemovesOwners: with own:false the backend makes a field independent of its owners.
func TestBackendRemovesOwners(t *testing.T) {
	stored, _ := redisStore(t, shared.Client(t), testBeat)
	for name, s := range map[string]store{"memory": memoryStore(queue.Options{}), "redis": stored} {
		t.Run(name, func(t *testing.T) {
			i := start(t, s, nil)
			owner, watcher := dialers["tcp"](t, i), dialers["tcp"](t, i)
			for client, p := range map[string]*testClient{"owner": owner, "watcher": watcher} {
				p.connect(client, "")
				p.send(`{"type":"subscribe","channel":"a","state":true,"ref":1}`)
				p.expect(object{"type": "subscribed", "ref": 1})
				p.expect(object{"type": "state", "first": true})
			}
			owner.send(`{"type":"publish","channel":"a","set":{"x":1,"y":1},"own":true,"ref":2}`)
			for owner.receive()["type"] != "published" {
			}
			watcher.expect(object{"type": "message", "by": "owner"})
			i.push(t, `{"channel":"a","touch":["x"],"own":false}`)
			watcher.expect(object{"type": "message", "until": object{"x": 0}})
			owner.close()
			if away := watcher.expect(object{"type": "message"})["away"].(object); len(away) != 1 || away["y"] == nil {
				t.Errorf("away %v, want y only", away)
			}
		})
	}
}
