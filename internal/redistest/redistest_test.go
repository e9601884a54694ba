package redistest

import "testing"

func TestClusterRefusesScriptsOverTwoSlots(t *testing.T) {
	c := StartCluster(t, 3).Client(t)
	if err := c.Set(t.Context(), "a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	err := c.Eval(t.Context(), "#!lua\nreturn redis.call('GET', 'b')", []string{"a"}).Err()
	if err == nil {
		t.Fatal("a script read a key of another slot: this is not a Cluster")
	}
}

func TestRestartKeepsThePort(t *testing.T) {
	s := Start(t)
	s.Kill()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}
