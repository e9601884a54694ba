package binding

import "testing"

// TestTwoPendingBinds has the later of two connections of a client leave before its bind. The
// client stays bound for the earlier one, whose session is not open yet: the server must not take
// its generation for one without a connection.
func TestTwoPendingBinds(t *testing.T) {
	const client = "ann/phone"
	for _, earlierEndsFirst := range []bool{false, true} {
		var c pendingBinds
		earlier := c.begin(client)
		c.bound(earlier, 1)
		later := c.begin(client)
		if hinted, lists := c.missed(earlier); !hinted || !lists {
			t.Error("the earlier connection does not read what the later one receives")
		}
		if !c.has(client, 1) {
			t.Error("while the later one is bound, the generation of the earlier one is unknown")
		}
		if earlierEndsFirst {
			c.bound(later, 2)
			c.end(client, earlier)
			if c.has(client, 1) || !c.has(client, 2) {
				t.Error("after the end of the earlier one, the generations are not those of the later one")
			}
			c.end(client, later)
		} else {
			c.end(client, later)
			if !c.has(client, 1) {
				t.Error("after the end of the later one, the generation of the earlier one is unknown")
			}
			c.end(client, earlier)
		}
		if len(c.latest) > 0 {
			t.Errorf("%d pending binds are left", len(c.latest))
		}
	}
}
