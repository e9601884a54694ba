package snippets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A vectorStep is one step of a file in docs/vectors, as far as it concerns the broker.
// docs/guides/clients.md describes them.
type vectorStep struct {
	Net     string
	Out, In json.RawMessage
	Lost    bool            // Out does not arrive
	Other   json.RawMessage // a message of another client, which gets one answer
	Backend *struct {
		Call string
		Body json.RawMessage
	}
}

// TestVectors plays the client of each vector to a broker: it sends what the client sends, and
// compares what arrives. It leaves out vectors that need a failure of the store or much time.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs/vectors/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vector struct {
			About      string
			ClientOnly string `json:"client_only"`
			Steps      []vectorStep
		}
		if err := json.Unmarshal(text, &vector); err != nil || vector.About == "" {
			t.Fatalf("%s: %v, %q", file, err, vector.About)
		}
		if vector.ClientOnly != "" {
			continue
		}
		played++
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			e := newExchange(ctx, t, "vectors")
			for i, s := range vector.Steps {
				if err := e.playVector(ctx, s); err != nil {
					t.Fatalf("step %d, %s%s: %v", i+1, s.Out, s.In, err)
				}
			}
		})
	}
	if played < 10 {
		t.Errorf("only %d vectors are played to the broker", played)
	}
}

// playVector runs one step.
func (e *exchange) playVector(ctx context.Context, s vectorStep) error {
	switch {
	case s.Net == "lost":
		return e.run(ctx, step{who: "client", sent: true, disconnects: true})
	case s.Out != nil && !s.Lost:
		return e.run(ctx, step{who: "client", sent: true, text: string(s.Out)})
	case s.In != nil:
		return e.run(ctx, step{who: "client", text: string(s.In)})
	case s.Other != nil:
		if err := e.run(ctx, step{who: "other", sent: true, text: string(s.Other)}); err != nil {
			return err
		}
		return e.run(ctx, step{who: "other", text: "…"})
	case s.Backend != nil:
		method, path, ok := strings.Cut(s.Backend.Call, " ")
		if !ok {
			return fmt.Errorf("%q is no call", s.Backend.Call)
		}
		if err := e.run(ctx, step{who: "backend", sent: true, method: method, path: path, text: string(s.Backend.Body)}); err != nil {
			return err
		}
		return e.run(ctx, step{who: "backend", status: "200", text: "…"})
	}
	return nil
}

// TestVectorsPage: docs/guides/clients.md lists each file with what it shows.
func TestVectorsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/guides/clients.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(root, "docs/vectors/*.json"))
	for _, file := range files {
		var vector struct{ About string }
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &vector)
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		row := fmt.Sprintf("| [`%s`](../vectors/%s) | %s |\n", strings.TrimSuffix(name, ".json"), name, vector.About)
		if !strings.Contains(string(page), row) {
			t.Errorf("the page has no row\n%s", row)
		}
	}
	if n := strings.Count(string(page), "](../vectors/"); n != len(files) {
		t.Errorf("the page lists %d files, there are %d", n, len(files))
	}
}
