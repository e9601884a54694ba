//go:build long

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	// holdMessages keeps what the form receives, as a slow network does.
	holdMessages = `const deliver = ws.onmessage, kept = []; ws.onmessage = (e) => kept.push(e); 0`
	// releaseMessages lets the form receive what was kept, and then everything.
	releaseMessages = `ws.onmessage = deliver; kept.splice(0).forEach(deliver); 0`
	// formShown is what a user of the form sees.
	formShown = `title.value + "|" + place.value + "|" + note.textContent`
)

// TestStateDocForm opens the form of docs/state.md in two pages of Chromium, and types in both.
func TestStateDocForm(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b, blocks := startMemory(t), readDoc(t, "../../docs/state.md").blocks("html")
	if len(blocks) != 1 || !strings.Contains(blocks[0], docAddress) {
		t.Fatalf("want one page that connects to %s: %q", docAddress, blocks)
	}
	form := "<!doctype html><link rel=icon href=data:,>" + strings.ReplaceAll(blocks[0], docAddress, b.HTTP)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(form))
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	chromium := startBrowser(ctx, t)
	var pages [2]*tab
	for i := range pages {
		pages[i] = chromium.open(ctx, t, server.URL+"/form.html")
		pages[i].awaitEval(ctx, t, `typeof ws === "object" && ws.readyState`, "1")
	}
	one, two := pages[0], pages[1]
	bothShow := func(want string) {
		t.Helper()
		for _, p := range pages {
			p.awaitEval(ctx, t, formShown, `"`+want+`"`)
		}
	}

	one.typeInto(ctx, t, "title", "Minutes")
	bothShow("Minutes||")
	two.typeInto(ctx, t, "place", "Rome")
	bothShow("Minutes|Rome|")
	two.typeInto(ctx, t, "title", " of May")
	bothShow("Minutes of May|Rome|")

	// The network of page two is slow. All that a fast typist enters arrives.
	two.eval(ctx, t, holdMessages)
	for _, text := range []string{",", " 2", "6"} {
		two.typeInto(ctx, t, "place", text)
	}
	two.awaitEval(ctx, t, "kept.length", "2") // the message and the answer
	two.eval(ctx, t, releaseMessages)
	bothShow("Minutes of May|Rome, 26|")

	// Both pages change the same field, and page two has not received the first change.
	two.eval(ctx, t, strings.Replace(holdMessages, "const deliver = ws.onmessage, kept = [];", "", 1))
	one.typeInto(ctx, t, "title", "!")
	two.awaitEval(ctx, t, "kept.length", "1")
	two.typeInto(ctx, t, "title", "?")
	two.awaitEval(ctx, t, "kept.length", "2")
	two.awaitEval(ctx, t, formShown, `"Minutes of May?|Rome, 26|"`)
	two.eval(ctx, t, releaseMessages)
	two.awaitEval(ctx, t, formShown, `"Minutes of May!|Rome, 26|Another change was faster: title"`)
	one.awaitEval(ctx, t, formShown, `"Minutes of May!|Rome, 26|"`)
	two.typeInto(ctx, t, "title", "?")
	one.awaitEval(ctx, t, formShown, `"Minutes of May!?|Rome, 26|"`)
}
