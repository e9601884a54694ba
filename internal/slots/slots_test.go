package slots

import (
	"testing"

	"switchboard/internal/redistest"
)

// TestSlots compares the slots of keys with those of a Redis.
func TestSlots(t *testing.T) {
	client := redistest.StartCluster(t, 1).Client(t)
	for _, key := range []string{"", "news", "ch_{news}", "x{news}{chat}", "{}news", "{news", "news}", "mq_c_{ann/phone}", "ch_list", "ä{ö}"} {
		want, err := client.ClusterKeySlot(t.Context(), key).Result()
		if got := OfKey(key); err != nil || int64(got) != want {
			t.Errorf("%q has slot %d, want %d; %v", key, got, want, err)
		}
	}
	if Of("news") != OfKey("ch_{news}") {
		t.Error("the slot of a name is not that of its keys")
	}
}

func TestSet(t *testing.T) {
	var s Set
	if all := All(); !s.Empty() || all.Empty() || !all.Has(0) || !all.Has(Count-1) {
		t.Error("the empty set, or that of all slots, is wrong")
	}
	s.Add(63, 130)
	s.Add(-5, 1)
	for slot, want := range map[int]bool{0: true, 1: true, 2: false, 62: false, 63: true, 128: true, 130: true, 131: false} {
		if s.Has(slot) != want {
			t.Errorf("slot %d: %t, want %t", slot, !want, want)
		}
	}
	var more Set
	more.Add(Count-1, Count+7)
	s.AddAll(&more)
	if !s.Has(Count-1) || !s.Has(64) || more.Has(64) {
		t.Error("the union is wrong")
	}
}
