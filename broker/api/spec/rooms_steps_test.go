package spec_test

// roomSteps are calls about rooms. The client alice/phone is connected.
var roomSteps = []step{
	{op: "createRoom", body: `{"id":"arena","mode":"duel","name":"Epic Battle Arena","region":"eu","owner":"amy","app_version":"1","data":{"map":3}}`, save: "version=version"},
	{op: "createRoom", body: `{"mode":"duel","visibility":"private","key":"k1","capacity":2}`, save: "private=id"},
	{op: "createRoom", body: `{"id":"arena","mode":"duel"}`, status: 409, code: "conflict"},
	{op: "createRoom", body: `{"id":"arena","mode":"chess"}`, status: 400, code: "bad_request"},
	{op: "getRoom", path: "arena"},
	{op: "getRoom", path: "nowhere", status: 404, code: "not_found"},
	{op: "patchRoom", path: "arena", body: `{"region":"us-west","locked":false,"name":"Arena"}`, header: `If-Match: "{{version}}"`, save: "version=version"},
	{op: "patchRoom", path: "arena", body: `{"version":1,"data":null}`, status: 409, code: "conflict"},
	{op: "patchRoom", path: "nowhere", body: `{}`, status: 404, code: "not_found"},

	// Places.
	{op: "reservePlaces", path: "arena", body: `{"users":["amy"],"ttl":30}`},
	{op: "reservePlaces", path: "arena", body: `{"users":["bob","cat"]}`, status: 409, code: "full"},
	{op: "reservePlaces", path: "nowhere", body: `{"users":["bob"]}`, status: 404, code: "not_found"},
	{op: "joinRoom", path: "arena", body: `{"user":"alice","client":"phone","nickname":"Al"}`},
	{op: "joinRoom", path: "arena", body: `{"user":"amy","ttl":30}`},
	{op: "joinRoom", path: "arena", body: `{"user":"bob"}`, status: 409, code: "full"},
	{op: "joinRoom", path: "arena", body: `{"user":"bob","client":"phone"}`, status: 404, code: "not_found"},
	{op: "quickJoin", body: `{"mode":"duel","user":"eve","region":"us"}`},
	{op: "quickJoin", body: `{"mode":"duel","user":"alice","client":"phone","nickname":"Al"}`},
	{op: "quickJoin", body: `{"mode":"duel","user":"bob","client":"phone"}`, status: 404, code: "not_found"},
	{op: "quickJoin", body: `{"mode":"none","user":"bob"}`, status: 400, code: "bad_request"},
	{op: "queryRooms", body: `{"rooms":["arena","nowhere"]}`},
	{op: "getRoom", path: "{{private}}"},

	// Lists.
	{op: "listRooms", query: "mode=duel&order=created&desc=1&limit=1", save: "next=cursor"},
	{op: "listRooms", query: "mode=duel&order=created&desc=1&limit=1&cursor={{next}}"},
	{op: "listRooms", query: "status=waiting&visibility=public&region=us-west&free=0&from=0&to=9000000000000"},
	{op: "listRooms", query: "order=age", status: 400, code: "bad_request"},
	{op: "countRooms", query: "mode=duel&status=waiting&visibility=private"},
	{op: "countRooms", query: "mode=duel&region=eu", status: 400, code: "bad_request"},
	{op: "listRoomsOfUser", path: "alice", query: "limit=10"},

	// The end of memberships and of the room.
	{op: "kickMember", path: "arena", body: `{"n":1}`},
	{op: "kickMember", path: "arena", body: `{"n":99}`, status: 404, code: "not_found"},
	{op: "leaveRoom", path: "arena", body: `{"user":"alice"}`},
	{op: "leaveRoom", path: "arena", body: `{"user":"alice"}`, status: 404, code: "not_found"},
	{op: "lockRoom", path: "arena", body: `{}`},
	{op: "lockRoom", path: "nowhere", body: `{"locked":true}`, status: 404, code: "not_found"},
	{op: "joinRoom", path: "arena", body: `{"user":"bob"}`, status: 423, code: "locked"},
	{op: "reservePlaces", path: "arena", body: `{"users":["bob"]}`, status: 423, code: "locked"},
	{op: "startRoom", path: "arena"},
	{op: "startRoom", path: "nowhere", status: 404, code: "not_found"},
	{op: "finishRoom", path: "arena"},
	{op: "finishRoom", path: "nowhere", status: 404, code: "not_found"},
	{op: "startRoom", path: "arena", status: 409, code: "conflict"},
	{op: "deleteRoom", path: "arena", header: `If-Match: "1"`, status: 409, code: "conflict"},
	{op: "deleteRoom", path: "arena"},
	{op: "deleteRoom", path: "arena", status: 404, code: "not_found"},
}
