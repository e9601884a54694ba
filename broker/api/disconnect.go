package api

import (
	"net/http"

	"switchboard/internal/wire"
)

func (a api) disconnectClient(w http.ResponseWriter, r *http.Request) {
	client := wire.ClientID(r.PathValue("user"), r.PathValue("client"))
	if err := wire.CheckClientID(client); err != nil {
		a.writeError(w, err)
		return
	}
	c, _, err := a.Queue.Client(r.Context(), client)
	if err == nil {
		var n int
		if n, err = a.disconnect(r, c.Server, client); err == nil {
			writeJSON(w, http.StatusOK, map[string]int{"disconnected": n})
			return
		}
	}
	a.writeError(w, err)
}

func (a api) disconnectUser(w http.ResponseWriter, r *http.Request) {
	user, err := PathName(r, "user")
	if err != nil {
		a.writeError(w, err)
		return
	}
	bindings, err := a.Registry.User(r.Context(), user)
	total := 0
	for _, b := range bindings {
		n, e := a.disconnect(r, b.Server, b.Client)
		if e != nil {
			err = e // the loop still disconnects the other clients
		}
		total += n
	}
	if err != nil {
		a.writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]int{"disconnected": total})
}

// disconnect closes one client's connection. It returns how many it closed.
func (a api) disconnect(r *http.Request, server, client string) (int, error) {
	if server == "" {
		return 0, nil
	}
	closed, err := a.Cluster.Disconnect(r.Context(), server, client)
	if err != nil || !closed {
		return 0, err
	}
	return 1, nil
}
