package system

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/freeport"
	"switchboard/internal/testbed"
)

// TestVersions compares the versions in reports with those that are built.
func TestVersions(t *testing.T) {
	mod, err := os.ReadFile("../peers/centrifuge/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/centrifugal/centrifuge " + centrifugeVersion + "\n"; !strings.Contains(string(mod), want) {
		t.Errorf("go.mod has no line %q", want)
	}
	var npm struct{ Dependencies map[string]string }
	text, err := os.ReadFile("../peers/socketio/package.json")
	if err == nil {
		err = json.Unmarshal(text, &npm)
	}
	if want := npm.Dependencies["socket.io"] + ", redis-adapter " + npm.Dependencies["@socket.io/redis-adapter"]; err != nil || want != socketIOVersion {
		t.Errorf("package.json has %s (%v), not %s", want, err, socketIOVersion)
	}
}

// TestPeerThatFails starts a program that ends at once. The error must come at once and contain its
// output.
func TestPeerThatFails(t *testing.T) {
	addr, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "echo no such option >&2; exit 3")
	if _, err := startPeer(t.Context(), "broken", addr, cmd); err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("got %v", err)
	}
}

func TestChildren(t *testing.T) {
	ready := make(chan string, 1)
	cmd := exec.Command("sh", "-c", "sleep 600 & echo $!; wait")
	process, err := testbed.Start("parent", cmd, func(line []byte) { ready <- string(line) })
	if err != nil {
		t.Fatal(err)
	}
	defer process.Kill()
	child := <-ready
	if got := childPIDs(process.PID()); !slices.Equal(got, []int{atoi(t, child)}) {
		t.Errorf("got %v, want %s", got, child)
	}
}

func atoi(t *testing.T, s string) (n int) {
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestMQTTPublisher checks the packet identifiers. The last acknowledgement repeats an identifier.
func TestMQTTPublisher(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		for _, step := range []struct {
			size    int
			answers string
		}{
			{10, "\x40\x02\xff\xff"},                 // Publish
			{20, "\x40\x02\x00\x01\x40\x02\x00\x02"}, // PublishBatch of two; 0 is not a valid id
			{10, "\x40\x02\x00\x02"},                 // Publish
		} {
			if _, err := io.ReadFull(server, make([]byte, step.size)); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(server, step.answers)
		}
	}()
	p := &mqttPublisher{conn: client, in: bufio.NewReader(client), id: 65_534}
	x := []byte("xyz")
	if err := p.Publish(t.Context(), "c", x); err != nil {
		t.Error(err)
	}
	if err := p.PublishBatch(t.Context(), []string{"c", "d"}, [][]byte{x, x}); err != nil {
		t.Error(err)
	}
	if err := p.Publish(t.Context(), "c", x); err == nil || !strings.Contains(err.Error(), "2 was acknowledged instead of 3") {
		t.Errorf("got %v", err)
	}
	<-done
}
