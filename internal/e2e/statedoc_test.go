//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
)

// docAddress is the address of the broker in the documentation.
const docAddress = "127.0.0.1:8080"

// A doc is a page of the documentation.
type doc struct{ text string }

func readDoc(t *testing.T, path string) doc {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return doc{string(text)}
}

// curls returns the curl commands.
func (d doc) curls() []string {
	return regexp.MustCompile(`(?m)^    (curl .*)$`).FindAllString(d.text, -1)
}

// blocks returns the code blocks in a language.
func (d doc) blocks(language string) (code []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(d.text, -1) {
		code = append(code, m[1])
	}
	return code
}

// startMemory starts a broker in memory, as `make run` does. args are more arguments.
func startMemory(t *testing.T, args ...string) *testbed.Broker {
	t.Helper()
	return startBroker(t, "broker", "", nil, append([]string{"--config", "../../configs/development.yaml", "--log-level", "info"}, args...)...)
}

// docID matches ids in answers of the broker.
var docID = regexp.MustCompile(`\b\d{15,}\b`)

// runCommand runs a command of the documentation. Pairs of replacements change the command. In the
// answer, ids are written as in the documentation.
func runCommand(ctx context.Context, t *testing.T, b *testbed.Broker, command string, replace ...string) (answer string, ids []string) {
	t.Helper()
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(command, replace[i]) {
			t.Fatalf("%s: there is no %s", command, replace[i])
		}
		command = strings.ReplaceAll(command, replace[i], replace[i+1])
	}
	out, err := exec.CommandContext(ctx, "bash", "-c", strings.ReplaceAll(command, docAddress, b.HTTP)).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return docID.ReplaceAllString(strings.TrimSpace(string(out)), "735…512"), docID.FindAllString(string(out), -1)
}

// TestStateDocCommands runs every curl command of docs/state.md.
func TestStateDocCommands(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b, page := startMemory(t), readDoc(t, "../../docs/state.md")
	curls := page.curls()
	if len(curls) != 6 {
		t.Fatalf("%d commands, want 6: %q", len(curls), curls)
	}
	check := func(command, want string, replace ...string) []string {
		t.Helper()
		answer, ids := runCommand(ctx, t, b, command, replace...)
		if answer != want {
			t.Errorf("%s:\n%s, want\n%s", command, answer, want)
		}
		return ids
	}
	done := `{"results":[{"channel":"doc:1","id":735…512,"servers":0}]}`
	check(curls[0], done)
	shown := `{"channel":"doc:1","id":735…512,"fields":{"rows":[735…512,3],"title":[735…512,"Minutes"]}}`
	if !strings.Contains(page.text, "    "+shown+"\n") {
		t.Errorf("the page does not show %s", shown)
	}
	id := check(curls[1], shown)[2]
	check(curls[2], done, "735…512", id)
	check(curls[2], `{"error":{"code":"conflict","message":"field title: it does not meet the condition","fields":{"title":[735…512,"Agenda"]}}}`, "735…512", id)
	check(curls[3], `{"results":[{"channel":"doc:1","id":735…512,"servers":0,"fields":{"rows":4}}]}`)
	check(curls[3], `{"error":{"code":"limit","message":"field rows: the result 5 is out of bounds","fields":{"rows":[735…512,4]}}}`)

	// The countdown: nothing is written after the last command.
	f := follow(ctx, t, b, "quiz:7")
	done = `{"results":[{"channel":"quiz:7","id":735…512,"servers":1}]}`
	set := check(curls[4], done)[0]
	check(curls[5], done, `"ttl":20`, `"ttl":1`)
	if got := readState(ctx, t, b, "quiz:7", ""); fmt.Sprint(got["question"].id()) != set {
		t.Errorf("after the touch, the field has id %d, want %s", got["question"].id(), set)
	}
	f.await(ctx, t, "the question ends", func(messages []stateMessage) bool { return len(messages) == 3 })
	value, first, end := string(f.messages[0].Set["question"]), f.messages[0].Until["question"], f.messages[1].Until["question"]
	if value != `"6 × 7?"` || f.messages[1].Set != nil || end == 0 || end >= first {
		t.Errorf("got %s until %d, then %+v", value, first, f.messages[1])
	}
	if reason := f.messages[2].Gone["question"]; reason != "expired" {
		t.Errorf("the last message is %+v", f.messages[2])
	}
	if got := readState(ctx, t, b, "quiz:7", ""); len(got) != 0 {
		t.Errorf("after its end there is %s", got)
	}
}

// ask sends a request with a ref and returns the answer, whatever comes before it.
func ask(ctx context.Context, t *testing.T, conn textconn.Conn, request string) (answer map[string]any) {
	t.Helper()
	err := conn.Send(ctx, strings.Replace(request, "{", `{"ref":77,`, 1))
	for err == nil {
		var text []byte
		if text, err = conn.Receive(ctx); err == nil {
			answer = nil
			if err = json.Unmarshal(text, &answer); answer["ref"] == 77.0 {
				return answer
			}
		}
	}
	t.Fatalf("%s: %v", request, err)
	return nil
}

// TestStateDocRights starts a broker with the namespaces of docs/state.md.
func TestStateDocRights(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	blocks := readDoc(t, "../../docs/state.md").blocks("yaml")
	if len(blocks) != 1 {
		t.Fatalf("%d blocks, want 1: %q", len(blocks), blocks)
	}
	config := filepath.Join(t.TempDir(), "broker.yaml")
	if err := os.WriteFile(config, []byte(blocks[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startMemory(t, "--config", config)
	users := map[string]textconn.Conn{}
	for _, step := range []struct{ user, field, want string }{
		{"amy", "member/amy", "published"},
		{"bob", "member/bob", "published"},
		{"cid", "member/cid", "published"},
		{"dan", "member/amy", "forbidden"},
		{"dan", "member/dan", "published"},
		{"eve", "member/eve", "full map[member/amy member/bob member/cid member/dan]"},
		{"eve", "seat/1", "published"},
		{"amy", "seat/1", "conflict map[seat/1]"},
		{"eve", "seat/1", "published"},
		{"amy", "doc/title", "forbidden"},
		{"amy", "status", "forbidden"},
		{"amy", "$status", "forbidden"},
	} {
		conn := users[step.user]
		if conn == nil {
			f, err := dialState(ctx, b, step.user, "tab", "table:3")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.conn.Close)
			conn, users[step.user] = f.conn, f.conn
		}
		answer := ask(ctx, t, conn, fmt.Sprintf(`{"type":"publish","channel":"table:3","set":{%q:1}}`, step.field))
		got := fmt.Sprint(answer["type"])
		if code, refused := answer["code"]; refused {
			got = fmt.Sprint(code)
		}
		if fields, shown := answer["fields"].(map[string]any); shown {
			names := map[string]struct{}{}
			for name := range fields {
				names[name] = struct{}{}
			}
			got = strings.ReplaceAll(fmt.Sprint(got, " ", names), ":{}", "")
		}
		if got != step.want {
			t.Errorf("%s sets %s: %s, want %s; %v", step.user, step.field, got, step.want, answer)
		}
	}
	change(ctx, t, b, `{"channel":"table:3","set":{"status":"open","$$secret":1}}`)
	f, err := dialState(ctx, b, "fay", "tab", "table:3")
	if err != nil {
		t.Fatal(err)
	}
	defer f.conn.Close()
	if f.pages["status"] == 0 || f.pages["$$secret"] != 0 {
		t.Errorf("a client sees %v", f.pages)
	}
}
