package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestErase erases a message: the history shows that it was erased, and no longer its data.
func TestErase(t *testing.T) {
	b := startBroker(t, nil)
	b.ok(t, "push", "news", `"secret"`)
	b.ok(t, "push", "news", `"public"`)
	var first tailed
	line, _, _ := strings.Cut(b.ok(t, "history", "news", "--json"), "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil {
		t.Fatal(err)
	}
	id := strconv.FormatInt(first.ID, 10)
	for range 2 {
		if out := b.ok(t, "erase", "news", id); !strings.HasPrefix(out, "erased\t") {
			t.Errorf("%q", out)
		}
	}
	out := b.ok(t, "history", "news")
	if strings.Contains(out, "secret") || !strings.Contains(out, "public") || !strings.Contains(out, "news\t"+id+"\t\terased\n") ||
		!strings.Contains(out, `{"erase":`+id+"}") {
		t.Errorf("%q", out)
	}
	b.steps(t, []step{
		{line: "erase news 0", code: exitUsage, want: "ID: want the id of a message"},
		{line: "erase news", code: exitUsage, want: "missing"},
		{line: "erase none 5", code: exitNotFound, want: "channel none has no message 5"},
	})
}
