package main

import (
	"testing"

	"switchboard/internal/replay"
)

// erase records that message n of the stream is erased. Its report has id 10n+5.
func (j *journalTest) erase(n int) {
	for _, p := range j.pushes {
		if p.n == n {
			key := messageKey{"room", int64(10 * n)}
			j.erasing(p, key.id)
			j.erased(key, key.id+5, j.tick())
		}
	}
}

// learn records that the client receives the report about message n.
func (j *journalTest) learn(n int) { j.reported("a", messageKey{"room", int64(10 * n)}) }

func TestEraseCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		record   func(p *journalTest)
		want     eraseCounts
		messages counts
	}{
		"all is well": {
			func(p *journalTest) { p.pushed(1, 2); p.arrive(1); p.erase(1); p.learn(1); p.arrive(2) },
			eraseCounts{Erasures: 1, ReportsDue: 1, Reported: 1}, counts{Acknowledged: 2, Delivered: 2},
		},
		"erased before it arrives": {
			func(p *journalTest) { p.pushed(1); p.erase(1); p.learn(1) },
			eraseCounts{Erasures: 1, ErasedUnseen: 1, ReportsDue: 1, Reported: 1}, counts{},
		},
		"arrives after the report": {
			func(p *journalTest) { p.pushed(1); p.erase(1); p.learn(1); p.arrive(1) },
			eraseCounts{Erasures: 1, ReportsDue: 1, Reported: 1, Revealed: 1}, counts{Acknowledged: 1, Delivered: 1},
		},
		"no report": {
			func(p *journalTest) { p.pushed(1); p.arrive(1); p.erase(1) },
			eraseCounts{Erasures: 1, ReportsDue: 1, Unreported: 1}, counts{Acknowledged: 1, Delivered: 1},
		},
		"a gap covers the report": {
			func(p *journalTest) { p.pushed(1); p.arrive(1); p.erase(1); p.gap(10, 15) },
			eraseCounts{Erasures: 1, ReportsDue: 1}, counts{Acknowledged: 1, Delivered: 1, Gaps: 1},
		},
		"two reports": {
			func(p *journalTest) { p.pushed(1); p.arrive(1); p.erase(1); p.learn(1); p.learn(1) },
			eraseCounts{Erasures: 1, ReportsDue: 1, Reported: 1, RepeatedReport: 1}, counts{Acknowledged: 1, Delivered: 1},
		},
		"a report of a message that was not erased": {
			func(p *journalTest) { p.pushed(1); p.arrive(1); p.learn(1) },
			eraseCounts{}, counts{Acknowledged: 1, Delivered: 1, Strange: 1},
		},
		"the store has lost the message": {
			func(p *journalTest) {
				p.pushed(1)
				p.erasing(p.pushes[0], 10)
				p.erasedUnknown(messageKey{"room", 10})
			},
			eraseCounts{LostErasures: 1}, counts{Acknowledged: 1, Lost: 1, Undeclared: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newJournalTest()
			tc.record(p)
			if got, found := p.countErasures(); got != tc.want {
				t.Errorf("got  %+v\nwant %+v\n%v", got, tc.want, found)
			}
			if got, found := p.count(); got != tc.messages {
				t.Errorf("got  %+v\nwant %+v\n%v", got, tc.messages, found)
			}
		})
	}
}

// TestReceived checks what a new client must receive of a stored message.
func TestReceived(t *testing.T) {
	key := messageKey{"room", 10}
	for data, want := range map[string]messageKey{
		`1`: key, `~{"by":"amy","data":1}`: key, `~{"erase":7}`: {"room", -7}, `~{"erased":5}`: {}, `~{"set":{"a":1}}`: {}, `!1-2`: {},
	} {
		log, err := replay.Append(nil, key.id, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := received(key, log[0]); ok != (want != messageKey{}) || ok && got != want {
			t.Errorf("%s: %v %t, want %v", data, got, ok, want)
		}
	}
}
