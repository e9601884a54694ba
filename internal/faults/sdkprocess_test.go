package main

import (
	"strings"
	"testing"
)

func TestCheckSDKSaysWhatIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := checkSDK(t.TempDir())
	if err == nil {
		t.Fatal("no error, although all is missing")
	}
	for _, want := range []string{`"node"`, "node_modules/ws", ".ci/install", "client/js/dist/index.js", "make js"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}
