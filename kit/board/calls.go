package board

import (
	"net/http"

	"switchboard/broker/api"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// postScore is POST /v1/boards/{board}/scores with a [Score] without the board.
func (b *Boards) postScore(r *http.Request) (any, error) {
	var s Score
	if err := api.DecodeBody(r, &s); err != nil {
		return nil, err
	}
	if board := r.PathValue("board"); s.Board != "" && s.Board != board {
		return nil, wire.Errorf(wire.BadRequest, "board: the path names %.200s", board)
	}
	s.Board = r.PathValue("board")
	return b.Submit(r.Context(), s)
}

// getList is GET /v1/boards?cursor=&limit=.
func (b *Boards) getList(r *http.Request) (any, error) {
	cursor, limit, err := api.Page(r)
	if err != nil {
		return nil, err
	}
	return b.List(r.Context(), cursor, limit)
}

// getTop is GET /v1/boards/{board}?season=&offset=&cursor=&limit=.
func (b *Boards) getTop(r *http.Request) (any, error) {
	offset, err := api.QueryInt(r, "offset", 0, 0, maxOffset)
	if err != nil {
		return nil, err
	}
	skip, err := offsetOf(r.URL.Query().Get("cursor"), int(offset))
	if err != nil {
		return nil, err
	}
	limit, err := api.QueryInt(r, "limit", defaultEntries, 1, kit.MaxPage)
	if err != nil {
		return nil, err
	}
	return b.Top(r.Context(), r.PathValue("board"), seasonOf(r), skip, int(limit))
}

// getRank is GET /v1/boards/{board}/players/{player}?season=.
func (b *Boards) getRank(r *http.Request) (any, error) {
	return b.Rank(r.Context(), r.PathValue("board"), r.PathValue("player"), seasonOf(r))
}

// getAround is GET /v1/boards/{board}/players/{player}/around?season=&limit=.
func (b *Boards) getAround(r *http.Request) (any, error) {
	n, err := api.QueryInt(r, "limit", defaultNeighbors, 1, kit.MaxPage)
	if err != nil {
		return nil, err
	}
	return b.Around(r.Context(), r.PathValue("board"), r.PathValue("player"), seasonOf(r), int(n))
}

// deletePlayer is DELETE /v1/boards/{board}/players/{player}?season=.
func (b *Boards) deletePlayer(r *http.Request) (any, error) {
	return b.Remove(r.Context(), r.PathValue("board"), r.PathValue("player"), seasonOf(r))
}

func seasonOf(r *http.Request) string { return r.URL.Query().Get("season") }
