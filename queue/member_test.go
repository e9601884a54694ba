package queue

import (
	"fmt"
	"testing"
)

func TestDecodeMember(t *testing.T) {
	for _, c := range []struct {
		member string
		want   int64 // 0: malformed
	}{
		{`1:{}`, 1},
		{`735325130218700:"a:b"`, 735325130218700},
		{`9007199254740991:null`, maxID},
		{`9007199254740992:null`, 0},
		{`99999999999999999999:1`, 0},
		{`0:1`, 0},
		{`-1:1`, 0},
		{`+1:1`, 0},
		{`01:1`, 0},
		{`1.0:1`, 0},
		{` 1:1`, 0},
		{`:1`, 0},
		{`1`, 0},
		{`1:`, 0},
		{``, 0},
		{`1:{`, 0},
		{`1:1 2`, 0},
		{"1:[1,\n2]", 0},
		{`{"id":1}`, 0},
	} {
		m, err := DecodeMember(c.member)
		if m.ID != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%q: got %d, %v, want %d", c.member, m.ID, err, c.want)
		}
	}
}

func TestDecodeChannelMember(t *testing.T) {
	for member, want := range map[string]bool{
		`7:{}`: true, `7:~{}`: true, `7:~{"set":{"a":1}}`: true, `7:!1-2`: true,
		`7:~`: false, `7:~{`: false, "7:~{\n}": false, `07:~{}`: false, `7:`: false, `7:{`: false,
	} {
		if _, err := decodeChannelMember(member); (err == nil) != want {
			t.Errorf("%s: %v", member, err)
		}
	}
	if _, err := DecodeMember(`7:~{}`); err == nil {
		t.Error("an entry is accepted in a client's list")
	}
}

func FuzzMember(f *testing.F) {
	for _, seed := range []string{`1:{}`, `735325130218700:"a:b"`, `01:1`, `9007199254740992:null`, ":", "", "1:\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, member string) {
		m, err := DecodeMember(member)
		if err != nil {
			return
		}
		if m.ID < 1 || m.ID > maxID {
			t.Errorf("%q: id %d", member, m.ID)
		}
		if got := fmt.Sprintf("%d:%s", m.ID, m.Data); got != member {
			t.Errorf("%q is formatted as %q", member, got)
		}
		if got := memberSize(m); got != len(member) {
			t.Errorf("%q: size %d", member, got)
		}
	})
}
