package screen

import (
	"bytes"
	"testing"
	"time"
)

func none(string) string { return "" }

func TestTable(t *testing.T) {
	var out bytes.Buffer
	header := []string{"channel", "subscribers"}
	rows := [][]Cell{{{Text: "news", Color: Green}, Number(12)}, {{Text: "a\x1b[31m\u202eb"}, Number(3)}}
	New(&out, false, "auto", none).Table(header, rows)
	if want := "news\t12\na\\u001b[31m\\u202eb\t3\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
	out.Reset()
	s := New(&out, false, "always", none)
	s.Terminal = true
	s.Table(header, rows[:1])
	if want := "\x1b[1mCHANNEL\x1b[0m  \x1b[1mSUBSCRIBERS\x1b[0m\n\x1b[32mnews\x1b[0m              12\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

func TestColors(t *testing.T) {
	for _, tt := range []struct {
		color    string
		terminal bool
		variable string
		want     bool
	}{
		{"auto", false, "", false}, {"always", false, "NO_COLOR", true}, {"never", true, "", false},
	} {
		s := New(&bytes.Buffer{}, false, tt.color, func(name string) string {
			if name == tt.variable {
				return "1"
			}
			return ""
		})
		if s.Colors != tt.want {
			t.Errorf("%+v: %v", tt, s.Colors)
		}
	}
}

func TestValue(t *testing.T) {
	var out bytes.Buffer
	New(&out, true, "auto", none).Value(map[string]string{"a": "<b>"}, func() { t.Error("printed for people") })
	New(&out, false, "auto", none).Value(1, func() { out.WriteString("people\n") })
	if want := "{\"a\":\"<b>\"}\npeople\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

func TestWhen(t *testing.T) {
	now := time.UnixMilli(1795330758518)
	s := &Screen{}
	if got := s.When(now.UnixMilli(), now); got != "2026-11-22T06:59:18.518Z" {
		t.Error(got)
	}
	s.Terminal = true
	for d, want := range map[time.Duration]string{
		0: "0ms ago", 12 * time.Second: "12s ago", 192 * time.Second: "3m12s ago", -2*time.Hour - 5*time.Minute: "in 2h5m",
		52 * time.Hour: "2d4h ago",
	} {
		if got := s.When(now.Add(-d).UnixMilli(), now); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
