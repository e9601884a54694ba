package kittest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Call makes an HTTP call with a JSON body, or without one. header holds names and values. It
// returns the status, and decodes the answer into the value to which into points; nil ignores it.
func (b *Broker) Call(t testing.TB, method, path, body string, into any, header ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(into); err != nil {
			t.Fatalf("%s %s: %q: %v", method, path, raw, err)
		}
	}
	return resp.StatusCode
}

// Object is a JSON object.
type Object = map[string]any

// OK makes a call and fails the test unless its status is 200. It returns the answer.
func (b *Broker) OK(t testing.TB, method, path, body string, header ...string) Object {
	t.Helper()
	var o Object
	if status := b.Call(t, method, path, body, &o, header...); status != http.StatusOK {
		t.Fatalf("%s %s: %d %v", method, path, status, o)
	}
	return o
}

// Refused makes a call and fails the test unless its error has the code.
func (b *Broker) Refused(t testing.TB, code, method, path, body string, header ...string) {
	t.Helper()
	var o Object
	b.Call(t, method, path, body, &o, header...)
	if e, _ := o["error"].(Object); e["code"] != code {
		t.Fatalf("%s %s: %v, want the error %s", method, path, o, code)
	}
}
