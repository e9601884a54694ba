//go:build long

package e2e

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/textconn"
)

// docTime matches times in answers of the broker, Unix ms.
var docTime = regexp.MustCompile(`\b\d{13}\b`)

// TestKitDocCommands runs every curl command of docs/kit.md.
func TestKitDocCommands(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b, page := startMemory(t), readDoc(t, "../../docs/kit.md")
	const member = `"room":{"mode":"duel","visibility":"public","status":"waiting","capacity":2,"created":1795…},"members":[`
	const resource = `{"resource":"show-1","version":735…512,"capacity":20,"seats":["A1..A20"],`
	wants := []string{
		`{"id":"7","channel":"room:7","version":735…512,` + member + `]}`,
		`{"room":"7","numbers":{"alice":1,"bob":2}}`,
		`{"error":{"code":"full",`,
		member + `{"n":1,"reserved":true,"until":1795…,"user":"alice"},{"n":2,"reserved":true,"until":1795…,"user":"bob"}]}`,
		resource + `"sold":0,"held":0,"free":20}`,
		`{"id":"order-17","resource":"show-1","user":"alice","seats":["A1","A2"],"state":"held",`,
		`{"error":{"code":"conflict","message":"resource show-1: 1 of the seats are not free","data":{"taken":["A2"]}}}`,
		`"state":"sold"`,
		resource + `"sold":2,"held":0,"free":18}`,
		`{"board":"arena","player":"alice","score":1500,"previous":null,"rank":1,"count":1}`,
		`{"board":"arena","count":1,"entries":[{"rank":1,"player":"alice","score":1500}]}`,
		`"name":"alice@example.com"`,
		`"token":"`,
		`{"user":"alice","version":735…512,"until":1795…,"data":{"room":"7"}}`,
		`{"user":"alice","version":735…512,"until":1795…,"data":{"room":"7"}}`,
	}
	curls := page.curls()
	if len(curls) != len(wants) {
		t.Fatalf("%d commands, want %d: %q", len(curls), len(wants), curls)
	}
	for i, command := range curls {
		answer, _ := runCommand(ctx, t, b, command)
		if answer = docTime.ReplaceAllString(answer, "1795…"); !strings.Contains(answer, wants[i]) {
			t.Errorf("%s:\n%s, want\n%s", command, answer, wants[i])
		}
	}
	// The page shows these parts of answers.
	for _, shown := range []string{wants[1], wants[10], `"data":{"taken":["A2"]}`, `"sold":2,"held":0,"free":18`} {
		if !strings.Contains(page.text, shown) {
			t.Errorf("the page does not show %s", shown)
		}
	}
}

// TestKitDocJoin sends the messages of docs/kit.md to the TCP port.
func TestKitDocJoin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b, page := startMemory(t), readDoc(t, "../../docs/kit.md")
	runCommand(ctx, t, b, page.curls()[0])
	conn, err := textconn.DialTCP(ctx, net.Dialer{}, b.TCP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for _, m := range regexp.MustCompile(`(?m)^    (\{"type".*)$`).FindAllStringSubmatch(page.text, -1) {
		if err := conn.Send(ctx, m[1]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`"ref":1,"data":{"room":"7","channel":"room:7","n":1}`, `"member/1":[`} {
		for message := []byte(nil); !bytes.Contains(message, []byte(want)); {
			if message, err = conn.Receive(ctx); err != nil {
				t.Fatalf("no message has %s: %v", want, err)
			}
		}
	}
}
