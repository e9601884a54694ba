package queue

import (
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
		{"keep", []any{"HDEL", "mq_m_", "st_keep"}, "[mq_m has no st_keep, although there is a state]"},
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
			var listed []string
			for channel, err := range q.ChannelsWithStateKeys(t.Context()) {
				ok(t, err)
				listed = append(listed, channel)
			}
			equal(t, "channels", fmt.Sprint(slices.Compact(listed)), "["+room+"]")
			if test.damage != nil {
				test.damage[1] = q.keys.prefix + test.damage[1].(string) + "{" + room + "}"
				ok(t, client.Do(t.Context(), test.damage...).Err())
			}
			got := fmt.Sprint(must(q.CheckState(t.Context(), room))(t))
			equal(t, "differences", strings.Replace(got, decimal(a.Due), "DUE", 1), test.want)
		})
	}
}

// TestCheckStateThatEnded checks a channel whose position says that it has a state, and has none.
func TestCheckStateThatEnded(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	q := f.contract.(*Redis)
	must(f.update(t, set("a", "1")))(t)
	ok(t, client.Del(t.Context(), q.keys.state(room), q.keys.stateNames(room)).Err())
	equal(t, "differences", fmt.Sprint(must(q.CheckState(t.Context(), room))(t)),
		`[mq_m has st_keep "-1", st_bytes "2" and st_due "0", although there is no state]`)
	equal(t, "a channel without anything", fmt.Sprint(must(q.CheckState(t.Context(), "other"))(t)), "[]")
}
