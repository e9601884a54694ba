import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Backend, type Kit } from "../src/server/index.js";

type Methods<T> = { [M in keyof T as T[M] extends (...args: never[]) => unknown ? M : never]: T[M] };

/** One or several calls of each method: the lists of their arguments, with all parameters of a query. */
type Calls<T> = { [M in keyof Methods<T>]: Methods<T>[M] extends (...args: infer Args) => unknown ? Args[] : never };

const page = { limit: 1, cursor: "c" };

const calls: Omit<Calls<Backend>, "call"> = {
  push: [[{ channel: "c" }]],
  batch: [[[{ channel: "c" }]]],
  channels: [[{ ...page, prefix: "p" }]],
  channel: [["c"]],
  history: [["c", { after: 1, limit: 1, wait: 1 }]],
  presence: [["c", page]],
  state: [["c", { ...page, prefix: "p" }]],
  queryState: [[["c"], ["f"]]],
  user: [["u"]],
  users: [[page]],
  online: [[["u"]]],
  client: [["c"], ["u/c"]],
  queue: [["c", { after: 1, limit: 1, wait: 1 }], ["u/c"]],
  disconnectUser: [["u"]],
  disconnectClient: [["c"], ["u/c"]],
  servers: [[]],
  self: [[]],
  stats: [[]],
  check: [[{ channel: "c" }]],
  webhooks: [[]],
  deadLetters: [[page]],
  retryDeadLetters: [[]],
  notify: [[{ channels: ["c"] }]],
  reply: [["c", 1, null]],
};

const kit: Calls<Kit> = {
  createRoom: [[{ mode: "m" }]],
  room: [["r"]],
  queryRooms: [[["r"]]],
  countRooms: [[{ mode: "m", status: "waiting", region: "e", visibility: "public", owner: "u" }]],
  roomsOf: [["u", page]],
  rooms: [
    [
      {
        ...page,
        ...{ mode: "m", status: "waiting", region: "e", visibility: "public", owner: "u" },
        ...{ free: 1, order: "created", desc: 1, from: 1, to: 2 },
      },
    ],
  ],
  patchRoom: [["r", {}]],
  deleteRoom: [["r", { ifMatch: 1 }]],
  reserve: [["r", ["u"]]],
  joinRoom: [["r", { user: "u" }]],
  quickJoin: [[{ mode: "m", user: "u" }]],
  leaveRoom: [["r", "u"]],
  kick: [["r", 1]],
  operateRoom: [
    ["r", "lock"],
    ["r", "start"],
    ["r", "finish"],
  ],
  putResource: [["r", {}]],
  resource: [["r"]],
  resources: [[page]],
  queryResources: [[["r"]]],
  deleteResource: [["r"]],
  hold: [["r", {}]],
  sell: [["r", {}]],
  held: [["r", "h"]],
  operateHold: [
    ["r", "h", "renew"],
    ["r", "h", "confirm"],
    ["r", "h", "release"],
  ],
  holdsOf: [["r", "u"]],
  submit: [["b", { player: "p", score: 1 }]],
  removePlayer: [["b", "p", { season: "s" }]],
  boards: [[page]],
  board: [["b", { offset: 1, limit: 1, season: "s" }]],
  around: [["b", "p", { limit: 1, season: "s" }]],
  rank: [["b", "p", { season: "s" }]],
  accounts: [[{ ...page, state: "open" }]],
  account: [["a"]],
  accountByName: [["n"]],
  accountHistory: [["a"]],
  renameAccount: [["a", "n"]],
  setAccountPassword: [["a", "p"]],
  operateAccount: [
    ["a", "lock"],
    ["a", "unlock"],
    ["a", "delete"],
    ["a", "restore"],
  ],
  session: [["u"]],
  putSession: [["u", {}, 60]],
  deleteSession: [["u"]],
  createAvatar: [[{ user: "u", name: "n" }]],
  avatars: [[{ ...page, user: "u", status: "open" }]],
  avatar: [["a"]],
  patchAvatar: [["a", {}]],
  deleteAvatar: [["a", { ifMatch: 1 }]],
  placeAvatar: [["a", "s"]],
  takeAvatar: [["a"]],
  createScene: [[{ world: "w", name: "n" }]],
  scenes: [[{ ...page, world: "w", name: "n", status: "open" }]],
  scene: [["s"]],
  patchScene: [["s", {}]],
  deleteScene: [["s", { ifMatch: 1 }]],
};

test("each method of a backend makes a call; Go compares them with the OpenAPI document", async () => {
  const made: { By: string; Method: string; Target: string }[] = [];
  let by = "";
  const backend = new Backend("http://b", {
    fetch: async (url, { method } = {}) => {
      made.push({ By: by, Method: method!, Target: String(url).slice("http://b".length) });
      return new Response("{}");
    },
  });
  for (const [object, table] of [
    [backend, calls],
    [backend.kit, kit],
  ] as const) {
    for (const [name, lists] of Object.entries(table)) {
      by = name;
      const before = made.length;
      const method = (object as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>)[name]!;
      for (const args of lists) await method.apply(object, args);
      assert.equal(made.length, before + lists.length, name);
    }
  }
  const file = process.env["SWITCHBOARD_CALLS"];
  if (file) writeFileSync(file, JSON.stringify(made));
});
