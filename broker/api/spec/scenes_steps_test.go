package spec_test

import "strings"

// sceneSteps are calls about avatars and scenes. A scene holds one avatar.
var sceneSteps = []step{
	{op: "createScene", body: `{"id":"town","world":"earth","name":"Town","time":"noon","data":{"size":3}}`, save: "version=version"},
	{op: "createScene", body: `{"world":"earth","name":"Cave","status":"closed"}`, save: "cave=id"},
	{op: "createScene", body: `{"world":"earth","name":"Town"}`, status: 409, code: "conflict"},
	{op: "createScene", body: `{"world":"earth","name":"` + strings.Repeat("x", 101) + `"}`, status: 413, code: "too_large"},
	{op: "createAvatar", body: `{"id":"zoe","user":"amy","name":"Zoe","figure":"elf","data":{"level":3}}`},
	{op: "createAvatar", body: `{"user":"amy","name":"Max"}`, save: "max=id"},
	{op: "createAvatar", body: `{"id":"zoe","user":"amy","name":"Zoe"}`, status: 409, code: "conflict"},
	{op: "createAvatar", body: `{"user":"amy","name":"` + strings.Repeat("x", 101) + `"}`, status: 413, code: "too_large"},
	{op: "listAvatars", query: "user=amy&limit=1", save: "cursor=cursor"},
	{op: "listAvatars", query: "user=amy&status=open&cursor={{cursor}}"},
	{op: "getAvatar", path: "zoe", save: "avatar_version=version"},
	{op: "getAvatar", path: "unknown", status: 404, code: "not_found"},
	{op: "patchAvatar", path: "zoe", body: `{"name":"Zoë","figure":"orc"}`, header: `If-Match: "{{avatar_version}}"`},
	{op: "patchAvatar", path: "zoe", body: `{"version":1,"name":"Zoe"}`, status: 409, code: "conflict"},
	{op: "patchAvatar", path: "unknown", body: `{"name":"Zoe"}`, status: 404, code: "not_found"},
	{op: "patchAvatar", path: "zoe", body: `{"data":"` + strings.Repeat("x", 9000) + `"}`, status: 413, code: "too_large"},

	{op: "moveAvatar", path: "zoe", body: `{"scene":"town","from":""}`},
	{op: "moveAvatar", path: "zoe", body: `{"scene":"town","from":"elsewhere"}`, status: 409, code: "conflict"},
	{op: "moveAvatar", path: "{{max}}", body: `{"scene":"town"}`, status: 409, code: "full"},
	{op: "moveAvatar", path: "{{max}}", body: `{"scene":"{{cave}}"}`, status: 423, code: "locked"},
	{op: "moveAvatar", path: "{{max}}", body: `{"scene":"nowhere"}`, status: 404, code: "not_found"},
	{op: "getScene", path: "town"},
	{op: "getScene", path: "nowhere", status: 404, code: "not_found"},
	{op: "listScenes", query: "world=earth&status=open&limit=10"},
	{op: "listScenes", query: "world=earth&name=Town"},
	{op: "listScenes", query: "world=earth&name=Nowhere", status: 404, code: "not_found"},
	{op: "takeAvatarOut", path: "zoe"},
	{op: "takeAvatarOut", path: "unknown", status: 404, code: "not_found"},

	{op: "patchScene", path: "town", body: `{"status":"closed","time":"night"}`, header: `If-Match: "{{version}}"`},
	{op: "patchScene", path: "town", body: `{"name":"Cave"}`, status: 409, code: "conflict"},
	{op: "patchScene", path: "nowhere", body: `{"name":"Cave"}`, status: 404, code: "not_found"},
	{op: "patchScene", path: "town", body: `{"data":"` + strings.Repeat("x", 9000) + `"}`, status: 413, code: "too_large"},
	{op: "deleteScene", path: "town", header: `If-Match: "1"`, status: 409, code: "conflict"},
	{op: "deleteScene", path: "town"},
	{op: "deleteScene", path: "nowhere", status: 404, code: "not_found"},
	{op: "deleteAvatar", path: "zoe", header: `If-Match: "1"`, status: 409, code: "conflict"},
	{op: "deleteAvatar", path: "zoe"},
	{op: "deleteAvatar", path: "unknown", status: 404, code: "not_found"},
}
