package setting

import (
	"testing"
	"time"
)

type options struct {
	inner
	Rate   int      `setting:"rate" default:"500" zero:"true"`
	Size   int      `setting:"size" default:"64"`
	Hosts  []string `setting:"hosts" choices:"a,b"`
	Secret struct {
		Key text `setting:"secret.key" flag:"KEY" unset:"default none"`
	}
	Other func() `setting:"-"`
	Plain int
}

type inner struct {
	Wait time.Duration `setting:"wait" default:"90m"`
}

type text string

func find(t *testing.T, o *options, key string) *Setting {
	t.Helper()
	for _, s := range Of(o) {
		if s.Key == key {
			return s
		}
	}
	t.Fatalf("there is no %s", key)
	return nil
}

func TestOf(t *testing.T) {
	var keys []string
	for _, s := range Of(&options{}) {
		keys = append(keys, s.Key)
	}
	if got := OrList(keys); got != "wait, rate, size, hosts or secret.key" {
		t.Errorf("got %s", got)
	}
	if s := find(t, &options{}, "secret.key"); !s.Flag || s.Arg != "KEY" || s.DefaultText() != "default none" {
		t.Errorf("got %+v", s)
	}
}

// TestDefaults checks that Fill leaves a zero that is a value, and SetDefaults does not.
func TestDefaults(t *testing.T) {
	var all options
	SetDefaults(&all)
	if all.Rate != 500 || all.Size != 64 || all.Wait != 90*time.Minute || find(t, &all, "wait").DefaultText() != "default 1h30m" {
		t.Errorf("SetDefaults: %+v", all)
	}
	filled := options{Size: 7}
	if Fill(&filled); filled.Rate != 0 || filled.Size != 7 || filled.Wait != 90*time.Minute {
		t.Errorf("Fill: %+v", filled)
	}
}

func TestNegative(t *testing.T) {
	for _, o := range []options{{Size: -1}, {inner: inner{Wait: -1}}} {
		if !Negative(&o) {
			t.Errorf("%+v is accepted", o)
		}
	}
	if Negative(&options{Plain: -1}) {
		t.Error("a field that is no setting is checked")
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{
		{"rate", "0", ""},
		{"rate", "-1", "want zero or more, got -1"},
		{"size", "0", "want more than zero, got 0"},
		{"size", "x", `want a whole number, got "x"`},
		{"size", "99999999999999999999", "99999999999999999999 is too large"},
		{"wait", "0s", "want more than zero, got 0s"},
		{"wait", "-2s", "want more than zero, got -2s"},
		{"wait", "soon", `want a duration like 2s or 30m, got "soon"`},
		{"hosts", "a, b", ""},
		{"hosts", "a,c", `want a or b, got "c"`},
		{"secret.key", "anything", ""},
	} {
		var o options
		s := find(t, &o, c.key)
		v, err := s.Parse(c.text)
		switch {
		case (err == nil) != (c.want == "") || err != nil && err.Error() != c.want:
			t.Errorf("%s: %s: %v, want %q", c.key, c.text, err, c.want)
		case err == nil:
			s.Set(v)
		}
		if err == nil && c.key == "hosts" && len(o.Hosts) != 2 || err == nil && c.key == "secret.key" && o.Secret.Key != "anything" {
			t.Errorf("%s: got %+v", c.key, o)
		}
	}
}
