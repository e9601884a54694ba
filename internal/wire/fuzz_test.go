package wire

import "testing"

// FuzzClientID: no two pairs of user and client share an id, and what is no pair has none.
func FuzzClientID(f *testing.F) {
	f.Add("alice", "phone")
	f.Add("", "c-1")
	f.Add("a/b/", "c")
	f.Add("a", "b/c")
	f.Fuzz(func(t *testing.T, user, client string) {
		good := (user == "" || CheckName("user", user) == nil) && CheckClientPart(client) == nil
		id := ClientID(user, client)
		if good && (UserOf(id) != user || ClientPart(id) != client || CheckClientID(id) != nil) {
			t.Fatalf("%q and %q are %q, which is %q of %q", user, client, id, ClientPart(id), UserOf(id))
		}
		if CheckClientID(id) == nil && ClientID(UserOf(id), ClientPart(id)) != id {
			t.Fatalf("%q is %q of %q", id, ClientPart(id), UserOf(id))
		}
	})
}
