//go:build long

package attack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What a user or an address may store at once in TestStored.
const (
	storedChannels = 20
	storedMost     = 1_000_000 // bytes
)

// TestStored attacks a broker with clients that store as much as they can. They reconnect, and some
// have no user.
func TestStored(t *testing.T) {
	more := fmt.Sprintf("limits: {proxies: [127.0.0.1], new_channels: 1, channels: %d, user_stored: %d}", storedChannels, storedMost)
	s := newScenario(t, newIssuer(t), more, "  anonymous: true")
	t.Run("anonymous channels by reconnecting", func(t *testing.T) { channelsByReconnecting(t, s) })
	t.Run("stored bytes", func(t *testing.T) { storedBytes(t, s) })
	s.finish(t)
}

// connectFrom connects an attacker without a user through a proxy, which names its address.
func (s *scenario) connectFrom(t *testing.T, address string) *attacker {
	t.Helper()
	a, err := s.dial(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	a.sendRaw(strings.Replace(handshake("", ""), "\r\n\r\n", "\r\nX-Forwarded-For: "+address+"\r\n\r\n", 1))
	response, err := http.ReadResponse(a.in, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake: %v %v", response, err)
	}
	a.frames = true
	a.send(fmt.Sprintf(`{"type":"connect","client":"stored-%d"}`, s.clientCount.Add(1)))
	a.waitFor(t, "connected")
	return a
}

// channelsByReconnecting makes channels on many connections, from two networks.
func channelsByReconnecting(t *testing.T, s *scenario) {
	networks := map[string]int{"203.0.113.7": 0, "2001:db8:7:7": 0}
	for i := range 2 * storedChannels {
		for network := range networks {
			address := network
			if strings.Contains(network, ":") {
				address += fmt.Sprintf("::%x", 1+i) // one /64
			}
			a := s.connectFrom(t, address)
			for k := range 3 {
				a.send(fmt.Sprintf(`{"type":"publish","channel":"open:%s-%d-%d","data":1}`, strings.ReplaceAll(network, ":", "."), i, k))
				switch got := a.reply(); got {
				case "published":
					networks[network]++
				case "error:rate_limited":
				default:
					t.Fatalf("got %s", got)
				}
			}
			_ = a.Close()
		}
	}
	for network, channels := range networks { // a few more if the test takes minutes
		if channels < storedChannels || channels > storedChannels+3 {
			t.Errorf("%s made %d channels", network, channels)
		}
	}
	s.checkService(t)
}

// storedBytes stores messages and fields on several connections of a user.
func storedBytes(t *testing.T, s *scenario) {
	data := strings.Repeat("x", 15_000)
	stored, refused := 0, 0
	for i := range 50 {
		a := s.connectUser(t, endpoints[i%2], "hoarder")
		for _, message := range []string{
			fmt.Sprintf(`{"type":"publish","channel":"hall:hoard","data":%q}`, data),
			fmt.Sprintf(`{"type":"publish","channel":"state:hoard","set":{"x":%q}}`, data),
		} {
			a.send(message)
			switch got := a.reply(); got {
			case "published":
				stored += len(data)
			case "error:rate_limited":
				refused++
			default:
				t.Errorf("got %s", got)
			}
		}
		_ = a.Close()
	}
	if stored > storedMost+5*len(data) || stored < storedMost-len(data) || refused == 0 {
		t.Errorf("stored %d bytes, %d refusals", stored, refused)
	}
	s.checkService(t)
}
