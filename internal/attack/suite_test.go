//go:build long

package attack

import "testing"

// attacks are short. Each is repeated until the honest clients have finished minRounds rounds.
var attacks = []struct {
	name   string
	attack func(*testing.T, *scenario)
}{
	{"forged tokens", forgedTokens},
	{"replayed tokens", replayedTokens},
	{"refresh with the token of another user", refreshAsAnother},
	{"revoked tokens", revokedTokens},
	{"replayed connects", replayedConnects},
	{"replayed pushes", replayedPushes},
	{"forged API keys", forgedKeys},
	{"invalid channel names", channelNames},
	{"invalid client names", clientNames},
	{"invalid names in API calls", namesInAPICalls},
	{"client ids of other users", stealClientIDs},
	{"huge heads", hugeHeads},
	{"JSON bombs before connect", bombsBeforeConnect},
	{"JSON bombs after connect", bombsAfterConnect},
	{"JSON bombs in API calls", bombsInCalls},
	{"a million targets", tooManyTargets},
	{"pipelined probes", pipelinedProbes},
	{"endless messages", endlessMessages},
	{"too many messages", tooManyMessages},
	{"small fragments", smallFragments},
	{"control frames", controlFrames},
	{"broken frames", brokenFrames},
	{"compressed bombs", compressedBombs},
	{"compression without negotiation", unnegotiatedCompression},
	{"input after the end", talkAfterClosing},
}

// longAttacks run in parallel with all others.
var longAttacks = []struct {
	name   string
	attack func(*testing.T, *scenario)
}{
	{"half-open connections", halfOpen},
	{"slow loris", slowLoris},
	{"unread responses", unreadResponses},
}

func TestBrokerSurvivesAttacks(t *testing.T) {
	s := newScenario(t, newIssuer(t), "", "")
	t.Run("parallel", func(t *testing.T) {
		for _, a := range longAttacks {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				a.attack(t, s)
			})
		}
		t.Run("short", func(t *testing.T) {
			t.Parallel()
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) { s.attackRepeatedly(t, a.attack) })
			}
			t.Run("slow readers", func(t *testing.T) { slowReaders(t, s) })
			t.Run("a revoked key", func(t *testing.T) { revokedKey(t, s) })
			t.Run("expired tokens", func(t *testing.T) { expiredTokens(t, s) })
		})
	})
	s.finish(t)
}
