package main

import (
	"encoding/json"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/internal/testbed"
)

var kitEnviron = []string{
	"SWITCHBOARD_KIT_ROOMS={}", "SWITCHBOARD_KIT_HOLDS={}", "SWITCHBOARD_KIT_BOARDS={}", "SWITCHBOARD_KIT_SESSIONS={}",
	"SWITCHBOARD_KIT_SCENES={}", "SWITCHBOARD_KIT_ACCOUNTS={}",
}

// step is a command, its exit code, and a part of its output.
type step struct {
	line  string // arguments; ␣ stands for a space within one
	code  int
	want  string // in stdout, or, if the command fails, in stderr
	stdin string
}

// steps runs commands one after another, as they are and those that read also with --json.
func (b broker) steps(t *testing.T, list []step) {
	t.Helper()
	for _, s := range list {
		var args []string
		for _, arg := range strings.Fields(s.line) {
			args = append(args, strings.ReplaceAll(arg, "␣", " "))
		}
		r := testbed.ExecuteInput(t, []string{"SWITCHBOARD_URL=" + b.url}, s.stdin, binary, args...)
		out := r.Stdout
		if s.code != exitOK {
			out = r.Stderr
		}
		if r.Code != s.code || !strings.Contains(out, s.want) {
			t.Errorf("%s: %+v, want %d and %q", s.line, r, s.code, s.want)
		}
		if s.code == exitOK && s.stdin == "" && strings.Contains(s.line, "get") {
			if out := b.ok(t, append(args, "--json")...); !json.Valid([]byte(out)) {
				t.Errorf("%s --json: %q", s.line, out)
			}
		}
	}
}

func TestRooms(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.steps(t, []step{
		{line: `room create default --id 7 --name Epic␣Arena --owner amy --data {"x":1} --capacity 3`, want: "room.name\tEpic Arena\n"},
		{line: "room create default --id 7", code: exitConflict, want: "Current values"},
		{line: "room reserve 7 amy bob --ttl 1m", want: "numbers.bob\t2\n"},
		{line: "room reserve 7 carol dan", code: exitConflict, want: "full"},
		{line: "room get 7", want: "2\tbob\t\t\ttrue\t"},
		{line: "room join 7 carol --nickname C", want: "n\t3\n"},
		{line: "room join 7 dan --client dan/tab", code: exitNotFound, want: "not_found"},
		{line: "room list --mode default --free 0", want: "7\tEpic Arena\tdefault\twaiting\t0\t3\t3\t"},
		{line: "room quick default erin --region eu", want: "reserved\ttrue\n"},
		{line: "room lock 7", want: "room.locked\ttrue\n"},
		{line: "room unlock 7", want: "room.status\twaiting\n"},
		{line: "room patch 7 --region eu --version 5", code: exitConflict, want: "its version is"},
		{line: "room patch 7 --region eu", want: "room.region\teu\n"},
		{line: "room kick 7 1", want: "n\t1\n"},
		{line: "room kick 7 one", code: exitUsage, want: "want a whole number"},
		{line: "room leave 7 carol", want: "n\t3\n"},
		{line: "room of bob", want: "7\tEpic Arena\twaiting\t2\ttrue"},
		{line: "room start 7", want: "room.status\tplaying\n"},
		{line: "room finish 7", want: "room.status\tfinished\n"},
		{line: "room start 7", code: exitConflict, want: "conflict"},
		{line: "room delete 7", want: "id\t7\n"},
		{line: "room get 7", code: exitNotFound, want: "there is none"},
		{line: "room list --from yesterday", code: exitUsage, want: "want a time"},
		{line: "room create default --data x", code: exitUsage, want: "want JSON"},
		{line: "room bogus", code: exitUsage, want: "unknown command"},
		{line: "room get", code: exitUsage, want: "missing: ROOM"},
	})
}

func TestHolds(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.steps(t, []step{
		{line: "hold put play --seats A1..A4,box --hold 5m", want: "hold_ms\t300000\n"},
		{line: "hold take play A1 A2 --id o1 --user bob", want: "seats\tA1 A2\n"},
		{line: "hold take play A2 --user amy", code: exitConflict, want: `"taken":["A2"]`},
		{line: "hold renew play o1", want: "state\theld\n"},
		{line: "hold confirm play o1", want: "state\tsold\n"},
		{line: "hold of play bob", want: "o1\tbob\tsold\tA1 A2\t"},
		{line: "hold show play", want: "free\t3\n"},
		{line: "hold sell play box --user amy --id o2", want: "state\tsold\n"},
		{line: "hold release play o1", want: "state\treleased\n"},
		{line: "hold confirm play o1", code: exitNotFound, want: "expired"},
		{line: "hold get play o1", want: "state\treleased\n"},
		{line: "hold put units --capacity 5", want: "free\t5\n"},
		{line: "hold take units --count 3", want: "state\theld\n"},
		{line: "hold take units --count 3", code: exitConflict, want: "full"},
		{line: "hold list", want: ""},
		{line: "hold delete play", want: ""},
		{line: "hold show play", code: exitNotFound, want: "not_found"},
	})
}

func TestBoards(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.steps(t, []step{
		{line: "board submit arena amy 50", want: "rank\t1\n"},
		{line: "board submit arena bob 60", want: "rank\t1\n"},
		{line: "board submit arena amy 20 --mode add --operation g1", want: "score\t70\n"},
		{line: "board submit arena amy many", code: exitUsage, want: "want a whole number"},
		{line: "board top arena --limit 1", want: "1\tamy\t70\n"},
		{line: "board rank arena bob", want: "rank\t2\n"},
		{line: "board around arena bob", want: "2\tbob\t60\n"},
		{line: "board remove arena bob", want: "previous\t60\n"},
		{line: "board rank arena bob", code: exitNotFound, want: "not_found"},
	})
	eventually(t, "the board is listed", func() bool {
		return strings.HasPrefix(b.cli(t, "board", "list").Stdout, "arena\tdesc\t\t\t1\tamy\t70\n")
	})
}

func TestAccounts(t *testing.T) {
	b := startBroker(t, kitEnviron)
	type account struct{ ID string }
	made := testbed.ExecuteInput(t, []string{"SWITCHBOARD_URL=" + b.url}, "correct horse\n", binary, "account", "create", "amy", "--json")
	var amy account
	if err := json.Unmarshal([]byte(made.Stdout), &amy); err != nil || amy.ID == "" || strings.Contains(made.Stdout, "renewal") {
		t.Fatalf("%+v (%v)", made, err)
	}
	b.steps(t, []step{
		{line: "account create amy", stdin: "correct horse\n", code: exitConflict, want: "conflict"},
		{line: "account create bob", code: exitUsage, want: "there is no password"},
		{line: "account list --state open", want: amy.ID + "\tamy\t"},
		{line: "account find amy", want: "id\t" + amy.ID},
		{line: "account get " + amy.ID, want: "name\tamy\n"},
		{line: "account rename " + amy.ID + " zoe --version 5", code: exitConflict, want: "the account has version"},
		{line: "account rename " + amy.ID + " zoe", want: "name\tzoe\n"},
		{line: "account lock " + amy.ID, want: "state\tlocked\n"},
		{line: "account unlock " + amy.ID, want: "state\topen\n"},
		{line: "account password " + amy.ID, stdin: "battery staple\n", want: "state\topen\n"},
		{line: "account delete " + amy.ID, want: "state\tdeleted\n"},
		{line: "account restore " + amy.ID, want: "state\topen\n"},
		{line: "account history " + amy.ID, want: "\tlocked\t"},
		{line: "account get none", code: exitNotFound, want: "not_found"},
		{line: `account session put amy {"a":1} --ttl 1h`, want: "data\t{\"a\":1}\n"},
		{line: "account session put amy --version 5", stdin: "{}", code: exitConflict, want: "conflict"},
		{line: "account session get amy", want: "user\tamy\n"},
		{line: "user forget amy", want: "sessions\t1\n"},
		{line: `account session put amy {"a":1}`, want: "data\t{\"a\":1}\n"},
		{line: "user budget amy", want: "rooms\t0\t100\n"},
		{line: "user budget amy --json", want: `{"user":"amy","objects":{`},
		{line: "user budget", code: exitUsage},
		{line: "account session delete amy", want: ""},
		{line: "account session get amy", code: exitNotFound, want: "not_found"},
	})
}

func TestScenes(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.steps(t, []step{
		{line: "scene create earth town --id town", want: "status\topen\n"},
		{line: "scene create earth town", code: exitConflict, want: `"scene":"town"`},
		{line: "scene avatar create amy Zoe --id zoe --figure elf", want: "figure\telf\n"},
		{line: "scene avatar patch zoe --name Zoey", want: "name\tZoey\n"},
		{line: "scene avatar move zoe town --from elsewhere", code: exitConflict, want: "conflict"},
		{line: "scene avatar move zoe town", want: "scene\ttown\n"},
		{line: "scene get town", want: "zoe\tZoey\telf\tfalse\n"},
		{line: "scene avatar list amy", want: "zoe\tamy\tZoey\telf\topen\ttown\t"},
		{line: "scene avatar get zoe", want: "scene\ttown\n"},
		{line: "scene avatar leave zoe", want: "id\tzoe\n"},
		{line: "scene avatar delete zoe", want: "status\tdeleted\n"},
		{line: "scene patch town --status closed", want: "status\tclosed\n"},
		{line: "scene list earth", want: "town\tearth\ttown\tclosed\t"},
		{line: "scene delete town", want: "status\tdeleted\n"},
	})
}

// TestKitIsOff: a broker without the kit is named as the reason.
func TestKitIsOff(t *testing.T) {
	b := startBroker(t, nil)
	if r := b.cli(t, "room", "list"); r.Code != exitNotFound || !strings.Contains(r.Stderr, "which systems of the kit it has") {
		t.Errorf("%+v", r)
	}
}

// TestKitCompletion: the shells complete the ids of rooms, resources and accounts, and users.
func TestKitCompletion(t *testing.T) {
	b := startBroker(t, kitEnviron)
	b.connect(t, client.Options{User: "amy", Client: "phone"}, "news")
	b.ok(t, "room", "create", "default", "--id", "arena")
	b.ok(t, "hold", "put", "play-7", "--seats", "A1..A3")
	b.ok(t, "board", "submit", "chess", "amy", "3")
	eventually(t, "the board is in the list", func() bool { return strings.HasPrefix(b.cli(t, "board", "list").Stdout, "chess") })
	eventually(t, "the resource is in the list", func() bool { return strings.HasPrefix(b.cli(t, "hold", "list").Stdout, "play-7") })
	for line, want := range map[string]string{
		"room get -":            "arena",
		"room join arena -":     "amy",
		"room reserve a b -":    "amy",
		"hold take -":           "play-7",
		"account session get -": "amy",
		"room kick arena -":     "",
		"board rank -":          "chess",
		"board rank chess -":    "",
	} {
		args := strings.Fields(line)
		args[len(args)-1] = "" // the argument to complete
		out := b.cli(t, append([]string{"__complete"}, args...)...).Stdout
		if names, _, _ := strings.Cut(out, ":"); strings.TrimSpace(names) != want { // then follows a directive
			t.Errorf("%s: %q, want %q", line, out, want)
		}
	}
}
