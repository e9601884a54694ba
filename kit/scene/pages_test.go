package scene_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"switchboard/client"
	clientscene "switchboard/client/scene"
	"switchboard/internal/meter"
	"switchboard/kit"
	"switchboard/kit/scene"
)

// TestPagesOfScene checks that the pages of a scene have each avatar that GetScene has, that each
// page reads a bounded number of bytes, and that the client reads all of them.
func TestPagesOfScene(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		const data = 6 << 10
		w.newScene("town", "wood")
		record := json.RawMessage(`"` + strings.Repeat("x", data) + `"`)
		for i := range 12 {
			id := fmt.Sprintf("a%02d", i)
			_, err := w.at(0).CreateAvatar(w.Context(), scene.NewAvatar{ID: id, User: "amy", Name: id, Data: record})
			w.must(err)
			w.transfer(id, "town")
		}
		amy := w.play(0, "amy", "phone")
		_, err := amy.Enter(w.Context(), "a03", "town")
		w.must(err)
		_, err = amy.Update(w.Context(), clientscene.Channel("town"), client.Set(clientscene.OwnField("a03", "pos"), 7))
		w.must(err)
		want, err := w.at(0).GetScene(w.Context(), "town")
		w.must(err)
		var got scene.SceneView
		pages := 0
		for cursor, more := "", true; more; pages++ {
			m := new(meter.Meter)
			page, err := w.at(0).PageScene(meter.With(w.Context(), m), "town", cursor)
			w.must(err)
			if m.Bytes() > kit.ClientBytes+4*data+2<<10 {
				t.Errorf("%d bytes were read for a page", m.Bytes())
			}
			page.Online += got.Online
			page.Avatars = append(got.Avatars, page.Avatars...)
			got, cursor, more = *page, page.Cursor, page.Cursor != ""
		}
		if pages < 2 || len(got.Avatars) != 12 || got.Online != 1 || string(got.Avatars[3].Fields["pos"]) != "7" || !reflect.DeepEqual(got.Avatars, want.Avatars) {
			t.Errorf("%d pages, %d online: %v\nwant %v", pages, got.Online, got.Avatars, want.Avatars)
		}
		v, err := amy.Get(w.Context(), "town")
		w.must(err)
		if len(v.Avatars) != 12 || v.Online != 1 {
			t.Errorf("the client has %d avatars, %d online", len(v.Avatars), v.Online)
		}
	})
}
