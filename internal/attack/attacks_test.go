package attack

import "testing"

// attacks are over in a moment, and made again until the crowd has played on beneath them.
var attacks = []struct {
	name   string
	attack func(*testing.T, *siege)
}{
	{"forged tokens", forgedTokens},
	{"replayed tokens", replayedTokens},
	{"another's token to refresh", refreshAsAnother},
	{"replayed connects", replayedConnects},
	{"replayed pushes", replayedPushes},
	{"forged API keys", forgedKeys},
	{"tricks with names of channels", channelNames},
	{"tricks with names of clients", clientNames},
	{"tricks with names in calls", calledNames},
	{"another's device", stolenDevices},
	{"huge heads", hugeHeads},
	{"JSON bombs from strangers", bombsFromStrangers},
	{"JSON bombs from users", bombsFromUsers},
	{"JSON bombs in calls", bombsInCalls},
	{"a million targets", millionTargets},
	{"pipelined probes", pipelinedProbes},
	{"endless messages", endlessMessages},
	{"too many messages", tooManyMessages},
	{"small fragments", smallFragments},
	{"control frames", controlFrames},
	{"broken frames", brokenFrames},
	{"compressed bombs", compressedBombs},
	{"compressed where it was not agreed on", compressedUnasked},
}

// sieges take their time, side by side with all others.
var sieges = []struct {
	name   string
	attack func(*testing.T, *siege)
}{
	{"half-open connections", halfOpen},
	{"slow loris", slowLoris},
	{"unread answers", unreadAnswers},
}

func TestTheBrokerStands(t *testing.T) {
	s := begin(t, newIssuer(t), "", "")
	t.Run("while", func(t *testing.T) {
		for _, a := range sieges {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				a.attack(t, s)
			})
		}
		t.Run("at once", func(t *testing.T) {
			t.Parallel()
			for _, a := range attacks {
				t.Run(a.name, func(t *testing.T) { s.under(t, a.attack) })
			}
			t.Run("slow readers", func(t *testing.T) { slowReaders(t, s) })
			t.Run("a revoked key", func(t *testing.T) { revokedKey(t, s) })
			t.Run("expired tokens", func(t *testing.T) { expiredTokens(t, s) })
		})
	})
	s.end(t)
}
