package queue

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCheckState damages each record of a state, and checks that CheckState finds it.
func TestCheckState(t *testing.T) {
	client := server.Client(t)
	for _, test := range []struct {
		name   string
		damage []any // a command; its key without the prefix and the channel
		want   string
	}{
		{"nothing", nil, "[]"},
		{"bytes", []any{"HSET", "mq_m_", "st_bytes", "9"}, `[mq_m: st_bytes is "9", want 6]`},
		{"due", []any{"HSET", "mq_m_", "st_due", "5"}, `[mq_m: st_due is "5", want DUE]`},
		{"keep", []any{"HDEL", "mq_m_", "st_keep"}, "[mq_m has no st_keep: the st_ keys with 3 fields are not read]"},
		{"no position", []any{"DEL", "mq_m_"}, "[mq_m is lost: the st_ keys with 3 fields are not read]"},
		{"TTL", []any{"PEXPIRE", "mq_m_", "1000000"}, "[mq_m expires, although there is a state]"},
		{"a name is missing", []any{"ZREM", "st_n_", "a"}, "[st_n_: a is missing]"},
		{"a name too many", []any{"ZADD", "st_n_", "0", "z"}, "[st_n_: z is there, and does not belong to a field]"},
		{"a name out of order", []any{"ZADD", "st_n_", "1", "a"}, "[st_n_: a has the score 1, want 0]"},
		{"an end", []any{"ZREM", "st_x_", "a"}, "[st_x_: a is missing]"},
		{"an end too many", []any{"ZADD", "st_x_", "7", "b"}, "[st_x_: b is there, and does not belong to a field]"},
		{"a part", []any{"ZREM", "st_p_", "b p"}, "[st_p_: b p is missing]"},
		{"an owner", []any{"HSET", "st_o_", "bob/tab", "5 0 s2"}, "[st_o_: bob/tab a is missing]"},
		{"a malformed owner", []any{"HSET", "st_o_", "cy", "5"}, "[st_o_: client cy: malformed owner]"},
		{"a parent", []any{"HSET", "st_", "p", "1 0 0 0 b x\n1"},
			"[st_p_: x p is missing st_p_: b p is there, and does not belong to a field st_: field p is a part of x, which does not exist]"},
		{"a malformed field", []any{"HSET", "st_", "b", "x"}, "[st_: field b: malformed field]"},
		{"a wrong type", []any{"SET", "st_x_", "1"}, "[a record has the wrong type]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := overRedis(client, Options{})
			q := f.contract.(*Redis)
			a := must(f.updateBy(t, bob, own(leased(set("a", "1"), time.Hour), 0), set("b", "1"), part(set("p", "1"), "b")))(t)
			equal(t, "channels", fmt.Sprint(listed(t, q)), "["+room+"]")
			if test.damage != nil {
				test.damage[1] = q.keys.prefix + test.damage[1].(string) + "{" + room + "}"
				ok(t, client.Do(t.Context(), test.damage...).Err())
			}
			got := problems(must(q.CheckState(t.Context(), room))(t))
			equal(t, "differences", strings.Replace(got, decimal(a.Due), "DUE", 1), test.want)
		})
	}
}

// problems returns what is wrong, without the remedies.
func problems(differences []StateDifference) string {
	var list []string
	for _, d := range differences {
		list = append(list, d.Problem)
	}
	return fmt.Sprint(list)
}

// listed returns the channels that CheckState would look at.
func listed(t *testing.T, q *Redis) []string {
	t.Helper()
	var channels []string
	for channel, err := range q.ChannelsWithStateKeys(t.Context()) {
		ok(t, err)
		channels = append(channels, channel)
	}
	slices.Sort(channels)
	return slices.Compact(channels)
}

// TestCheckLostState loses one side of a state: the fields, or the position. It checks that both
// are listed and found, that a check changes nothing, and that the remedy gives a correct state.
func TestCheckLostState(t *testing.T) {
	client := server.Client(t)
	for _, test := range []struct {
		name   string
		lose   []string
		want   string
		remedy string
		keep   bool // the remedy sets st_keep
		ended  int  // entries that end the old state for its subscribers
	}{
		{"all st_ keys", []string{"st_", "st_n_", "st_x_", "st_o_", "st_p_"},
			`[all st_ keys are lost: mq_m says that there is a state (st_keep "-1", st_bytes "4", st_due "DUE")]`, clearLost, true, 1},
		{"fields and owners", []string{"st_", "st_o_"},
			`[st_ and st_o_ are lost: mq_m says that there is a state (st_keep "-1", st_bytes "4", st_due "DUE")]`, clearLost, true, 1},
		{"position", []string{"mq_m_"}, "[mq_m is lost: the st_ keys with 2 fields are not read]", writeUnknown, false, 0},
		{"position and fields", []string{"mq_m_", "st_"}, "[mq_m is lost: the st_ keys with 0 fields are not read]", writeUnknown, false, 0},
		{"all but an index", []string{"mq_m_", "st_", "st_n_", "st_o_", "st_p_"},
			"[mq_m is lost: the st_ keys with 0 fields are not read]", writeUnknown, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := overRedis(client, Options{})
			q, ctx := f.contract.(*Redis), t.Context()
			a := must(f.updateBy(t, bob, own(leased(set("a", "1"), time.Hour), 0), set("b", "2")))(t)
			for _, key := range test.lose {
				ok(t, client.Del(ctx, q.keys.prefix+key+"{"+room+"}").Err())
			}
			for range 2 {
				equal(t, "channels", fmt.Sprint(listed(t, q)), "["+room+"]")
				got := must(q.CheckState(ctx, room))(t)
				equal(t, "differences", strings.Replace(problems(got), decimal(a.Due), "DUE", 1), test.want)
				equal(t, "remedy", got[0].Remedy, test.remedy)
			}
			if test.keep {
				ok(t, client.HSet(ctx, q.keys.channelMeta(room), "st_keep", "1").Err())
			}
			must(f.update(t, set("c", "3")))(t)
			equal(t, "after the remedy", problems(must(q.CheckState(ctx, room))(t)), "[]")
			cleared := 0
			for _, m := range must(f.ReadChannel(ctx, room, 0, 10))(t).Messages {
				if bytes.Contains(m.Data, []byte(`"cleared":true`)) {
					cleared++
				}
			}
			equal(t, "entries that end the state", cleared, test.ended)
			page := f.ReadStates(ctx, []StateRead{{Channel: room}})[0]
			equal(t, "fields", len(must(page.Value, page.Err)(t).Fields), 1)
		})
	}
}

// TestChannelsWithStateKeys checks that channels with messages alone are not listed, and that more
// positions than a page are read.
func TestChannelsWithStateKeys(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	q, ctx := f.contract.(*Redis), t.Context()
	must(f.AppendChannel(ctx, ChannelPush{Channel: room, Data: []byte("1")}))(t)
	equal(t, "a channel without a state", fmt.Sprint(listed(t, q)), "[]")
	equal(t, "its differences", problems(must(q.CheckState(ctx, room))(t)), "[]")
	for i := range metaPage + 1 {
		ok(t, client.HSet(ctx, q.keys.channelMeta(fmt.Sprint("c", i)), "st_bytes", "1").Err())
	}
	ok(t, client.Set(ctx, q.keys.channelMeta("wrong"), "1", 0).Err())
	equal(t, "channels", len(listed(t, q)), metaPage+2)
	equal(t, "a wrong type", problems(must(q.CheckState(ctx, "wrong"))(t)), "[a record has the wrong type]")
	equal(t, "a channel without anything", problems(must(q.CheckState(ctx, "other"))(t)), "[]")
}
