package room_test

import (
	"fmt"
	"sync"
	"testing"

	clientroom "switchboard/client/room"
	"switchboard/internal/await"
)

// TestQuick fills rooms by quick joins from many clients at once.
func TestQuick(t *testing.T) {
	eachListed(t, 3, func(w *world, _ *recorder) {
		const players = 24
		var wg sync.WaitGroup
		for i := range players {
			r := w.connect(i, "user"+fmt.Sprint(i))
			wg.Go(func() {
				if _, err := r.Quick(w.Context(), clientroom.QuickOptions{Mode: "battle"}); err != nil {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		in := 0
		for _, id := range w.list("mode=battle") {
			s, err := w.rooms[0].Read(w.Context(), id)
			if err != nil {
				w.Fatal(err)
			}
			in += len(s.Members)
			w.checkCapacity(id, 4)
		}
		if in != players {
			w.Errorf("%d players are in rooms, want %d", in, players)
		}
	})
}

// TestQuickFor checks that the backend takes places for users, and joins for clients.
func TestQuickFor(t *testing.T) {
	eachListed(t, 2, func(w *world, _ *recorder) {
		quick := func(user, client string) object {
			return w.http(200, "POST", "/v1/rooms/quick", object{"mode": "battle", "region": "eu", "user": user, "client": client})
		}
		first := quick("amy", "")
		id := first["room"].(string)
		if first["n"] != 1.0 || first["reserved"] != true {
			w.Errorf("the first place is %v", first)
		}
		w.http(404, "POST", "/v1/rooms/quick", object{"mode": "battle", "user": "bob", "client": "phone"})
		w.http(400, "POST", "/v1/rooms/quick", object{"mode": "none", "user": "bob"})
		w.wantMembers(id, "owner 0 1=amy?")
		if got := w.http(200, "GET", "/v1/rooms/"+id, nil); got["owner_user"] != "amy" {
			w.Errorf("the owner of the new room is %v", got["owner_user"])
		}
		phone, _ := w.device(1, "bob", "phone")
		await.True(w.T, "bob is connected", func() bool { c, _ := phone.Identity(); return c == "bob/phone" })
		if got := quick("bob", "phone"); got["room"] != id || got["n"] != 2.0 || got["reserved"] != nil {
			w.Errorf("bob joined %v, want room %s", got, id)
		}
		for n, user := range []string{"cat", "dan"} {
			if got := quick(user, ""); got["room"] != id || got["n"] != float64(n+3) {
				w.Errorf("%s has the place %v, want room %s", user, got, id)
			}
		}
		if got := quick("eve", ""); got["room"] == id {
			w.Errorf("eve has a place in the full room %s", id)
		}
		amy := w.connect(0, "amy")
		w.join(amy, id, 1)
		w.wantMembers(id, "owner 1 1=amy 2=bob 3=cat? 4=dan?")
	})
}
