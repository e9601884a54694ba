//go:build long

package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	js "switchboard/client/js"
	"switchboard/internal/testbed"
)

// tutorialPage serves the page of a tutorial with the JavaScript client beside it.
func tutorialPage(t *testing.T, b *testbed.Broker, tutorial string) string {
	t.Helper()
	blocks := readDoc(t, "../../docs/tutorials/"+tutorial).blocks("html")
	if len(blocks) != 1 || !strings.Contains(blocks[0], docAddress) {
		t.Fatalf("want one page that connects to %s: %q", docAddress, blocks)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.ReplaceAll(blocks[0], docAddress, b.HTTP)))
	})
	mux.HandleFunc("/switchboard/{file...}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, js.Dist, "dist/"+r.PathValue("file"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// TestChatTutorial opens the page of docs/tutorials/chat.md in two windows.
func TestChatTutorial(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b := startMemory(t)
	url, chromium := tutorialPage(t, b, "chat.md"), startBrowser(ctx, t)
	alice := chromium.open(ctx, t, url+"/?alice")
	bob := chromium.open(ctx, t, url+"/?bob")
	for _, p := range []*tab{alice, bob} {
		p.awaitEval(ctx, t, `document.querySelector("#here")?.textContent`, `"here: alice, bob"`)
	}
	alice.eval(ctx, t, `document.querySelector("#text").value = "hi"; document.querySelector("#form").requestSubmit(); 0`)
	const log = `document.querySelector("#log")?.innerText`
	for _, p := range []*tab{alice, bob} {
		p.awaitEval(ctx, t, log, `"alice: hi"`)
	}
	late := chromium.open(ctx, t, url+"/?carol")
	late.awaitEval(ctx, t, log, `"alice: hi"`)
}

// TestSeatsTutorial opens the page of docs/tutorials/seats.md in two windows, in which two visitors
// choose the same seat.
func TestSeatsTutorial(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b := startMemory(t)
	runCommand(ctx, t, b, `curl -s -X PUT 127.0.0.1:8080/v1/holds/play-7 -d '{"seats":["A1..A20"]}'`)
	url, chromium := tutorialPage(t, b, "seats.md"), startBrowser(ctx, t)
	amy := chromium.open(ctx, t, url+"/?amy")
	const seat = `document.querySelectorAll("#map button")[6]`
	amy.awaitEval(ctx, t, seat+`?.className`, `"free"`)
	amy.eval(ctx, t, seat+`.click(); 0`)
	amy.awaitEval(ctx, t, seat+`.className`, `"held mine"`)
	bob := chromium.open(ctx, t, url+"/?bob")
	bob.awaitEval(ctx, t, seat+`?.className + " " + `+seat+`?.disabled`, `"held true"`)
	bob.eval(ctx, t, seat+`.disabled = false; `+seat+`.click(); 0`)
	bob.awaitEval(ctx, t, `document.querySelector("#note").textContent`, `"another visitor was faster"`)
}
