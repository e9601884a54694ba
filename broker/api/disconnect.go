package api

import "net/http"

func (a api) disconnectClient(r *http.Request) (any, error) {
	client, err := pathClient(r)
	if err != nil {
		return nil, err
	}
	c, _, err := a.Queue.Client(r.Context(), client)
	if err != nil {
		return nil, err
	}
	n, err := a.disconnect(r, c.Server, client)
	return map[string]int{"disconnected": n}, err
}

func (a api) disconnectUser(r *http.Request) (any, error) {
	user, err := PathName(r, "user")
	if err != nil {
		return nil, err
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
	return map[string]int{"disconnected": total}, err
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
