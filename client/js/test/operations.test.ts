import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Backend, type Kit, type Push } from "../src/server/index.js";

type Methods<T> = { [M in keyof T as T[M] extends (...args: never[]) => unknown ? M : never]: T[M] };

/** The calls of each method: the lists of their arguments, one of them with everything that can be sent. */
type Calls<T> = { [M in keyof Methods<T>]: Methods<T>[M] extends (...args: infer Args) => unknown ? Args[] : never };

const page = { limit: 1, cursor: "c" };
const data = { a: 1 };
const change = {
  ...{ set: { f: 1 }, del: ["f"], add: { f: { by: 1, min: 0, max: 9 } }, touch: ["f"] },
  ...{ if: { f: 1 }, of: { f: "g" }, own: false, ttl: 1, durable: true },
};
const targets = [
  ...[{ channel: "c" }, { channels: ["c"] }, { user: "u" }, { users: ["u"] }, { client: "c" }, { clients: ["c"] }],
  { all: true } as const,
];

const calls: Omit<Calls<Backend>, "call"> = {
  push: [
    ...targets.map((target): [Push] => [{ ...target, data }]),
    [{ channel: "c", data, key: "k", ...change }],
    [{ user: "u", data, notify_after: 1, first: true, exclude: "u/c" }],
  ],
  batch: [
    [targets.map((target) => ({ ...target, data }))],
    [[{ channel: "c", data, key: "k", ...change }]],
    [
      [
        { user: "u", data, notify_after: 1, first: true, exclude: "u/c", key: "k" },
        { user: "u", data },
      ],
    ],
  ],
  channels: [[{ ...page, prefix: "p" }]],
  channel: [["c"]],
  history: [["c", { after: 1, limit: 1, wait: 1 }]],
  presence: [["c", page]],
  state: [["c", { ...page, prefix: "p" }]],
  queryState: [[["c"], ["f"]]],
  user: [["u"]],
  budget: [["u"]],
  forgetUser: [["u"]],
  users: [[page]],
  online: [[["u"]]],
  client: [["c"], ["u/c"]],
  queue: [
    ["c", { after: 1, limit: 1, wait: 1 }],
    ["u/c", { after: 1, limit: 1, wait: 1 }],
  ],
  revokeUser: [["u", { before: new Date(), durable: true }]],
  revokeClient: [
    ["c", { before: new Date(), durable: true }],
    ["u/c", { before: new Date(), durable: true }],
  ],
  subscribeUser: [["u", ["c"], { after: 0 }]],
  subscribeClient: [
    ["c", ["c"], { after: 0 }],
    ["u/c", ["c"], { after: 0 }],
  ],
  unsubscribeUser: [["u", ["c"]]],
  unsubscribeClient: [
    ["c", ["c"]],
    ["u/c", ["c"]],
  ],
  disconnectUser: [["u"]],
  disconnectClient: [["c"], ["u/c"]],
  servers: [[]],
  self: [[]],
  stats: [[]],
  check: [[{ channel: "c", token: "t", user: "u", fields: ["f"] }]],
  webhooks: [[]],
  deadLetters: [[page]],
  retryDeadLetters: [[]],
  retryDeadLetter: [["1-2"]],
  dropDeadLetter: [["1-2"]],
  health: [[]],
  erase: [[{ channel: "c", id: 1, durable: true }]],
  notify: [[{ channels: ["c"], clients: ["c"] }]],
  reply: [["c", 1, null]],
};

const places = { id: "h", key: "k", user: "u", seats: ["A1"], count: 1, durable: true };
const scene = { name: "n", id: "i", key: "k", time: "t", data };

const kit: Calls<Kit> = {
  createRoom: [
    [
      {
        ...{ mode: "m", id: "r", key: "k", name: "n", visibility: "public", region: "e" },
        ...{ capacity: 1, app_version: "1", data, nickname: "n", owner: "u" },
      },
    ],
    [{ mode: "m", id: "r" }],
  ],
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
  patchRoom: [
    ["r", {}],
    ["r", { version: 1, name: "n", region: "e", locked: true, app_version: "1", data, owner: 1 }],
  ],
  deleteRoom: [["r", { ifMatch: 1 }], ["r"]],
  reserve: [
    ["r", ["u"], { ttl_ms: 1 }],
    ["r", ["u"], 1],
  ],
  joinRoom: [["r", { user: "u", client: "c", nickname: "n", ttl_ms: 1 }]],
  quickJoin: [
    [
      {
        ...{ mode: "m", region: "e", name: "n", app_version: "1", data },
        ...{ user: "u", client: "c", nickname: "n", ttl_ms: 1 },
      },
    ],
  ],
  leaveRoom: [["r", "u"]],
  kick: [
    ["r", 1, { ttl_ms: 60_000 }],
    ["r", 1, 60],
  ],
  operateRoom: [
    ["r", "lock", { locked: true }],
    ["r", "start"],
    ["r", "finish"],
  ],
  putResource: [
    [
      "r",
      {
        ...{ capacity: 1, seats: ["A1"], hold_ms: 1, max_life_ms: 1, per_user: 1, ends: 1, data, durable: true },
        import: [{ id: "h", user: "u", seats: ["A1"], count: 1, until: 1 }],
      },
    ],
    ["r", {}, { ifMatch: 1 }],
    ["r", {}, { ifNoneMatch: "*" }],
  ],
  resource: [["r"]],
  resources: [[page]],
  queryResources: [[["r"]]],
  deleteResource: [["r"], ["r", { ifMatch: "*" }]],
  hold: [
    ["r", { ...places, hold_ms: 1 }],
    ["r", {}],
  ],
  sell: [
    ["r", places],
    ["r", {}],
  ],
  held: [["r", "h"]],
  operateHold: [
    ["r", "h", "renew", { durable: true }],
    ["r", "h", "confirm", { durable: true }],
    ["r", "h", "release", { durable: true }],
    ["r", "h", "release"],
  ],
  holdsOf: [["r", "u"]],
  submit: [
    ["b", { player: "p", score: 1 }],
    ["b", { player: "p", score: 1, mode: "add", key: "k", season: "s", durable: true }],
  ],
  removePlayer: [["b", "p", { season: "s" }]],
  boards: [[page]],
  board: [["b", { offset: 1, limit: 1, season: "s", cursor: "c" }]],
  around: [["b", "p", { limit: 1, season: "s" }]],
  rank: [["b", "p", { season: "s" }]],
  accounts: [[{ ...page, state: "open" }]],
  account: [["a"]],
  accountByName: [["n"]],
  accountHistory: [["a"]],
  renameAccount: [
    ["a", "n"],
    ["a", "n", { ifMatch: 1 }],
  ],
  setAccountPassword: [["a", "p"]],
  operateAccount: [
    ["a", "lock"],
    ["a", "unlock"],
    ["a", "delete"],
    ["a", "restore"],
  ],
  session: [["u"]],
  putSession: [
    ["u", {}, { ttl_ms: 60_000 }],
    ["u", {}, 60],
    ["u", {}, undefined, { ifMatch: 1 }],
    ["u", null, undefined, { ifNoneMatch: "*" }],
  ],
  deleteSession: [["u"], ["u", { ifMatch: 1 }]],
  createAvatar: [[{ user: "u", name: "n", id: "i", key: "k", figure: "f", data }]],
  avatars: [[{ ...page, user: "u", status: "open" }]],
  avatar: [["a"]],
  patchAvatar: [
    ["a", {}],
    ["a", { version: 1, name: "n", figure: "f", data, status: "open" }],
  ],
  deleteAvatar: [["a"], ["a", { ifMatch: 1 }]],
  placeAvatar: [
    ["a", "s"],
    ["a", "s", "t"],
  ],
  takeAvatar: [["a"]],
  createScene: [[{ world: "w", ...scene, status: "open" }]],
  scenes: [[{ ...page, world: "w", status: "open" }]],
  sceneByName: [["w", "n"]],
  scene: [["s"]],
  patchScene: [
    ["s", {}],
    ["s", { version: 1, name: "n", status: "open", time: "t", data }],
  ],
  deleteScene: [["s"], ["s", { ifMatch: 1 }]],
};

/** A call as Go compares it with the OpenAPI document. */
interface Made {
  By: string;
  Method: string;
  Target: string;
  Header: Record<string, string[]>;
  Body?: unknown;
  Repeated: boolean;
}

/** Makes one call, whose first answer is lost. */
async function make(by: string, run: (backend: Backend) => Promise<unknown>): Promise<Made> {
  let made: Made | undefined;
  const backend = new Backend("http://b", {
    fetch: async (url, { method, headers, body } = {}) => {
      if (made) {
        made.Repeated = true;
        return new Response("{}");
      }
      made = {
        ...{ By: by, Method: method!, Target: String(url).slice("http://b".length), Repeated: false },
        Header: Object.fromEntries(Object.entries(headers as object).map(([name, value]) => [name, [String(value)]])),
        ...(body && { Body: JSON.parse(body as string) as unknown }),
      };
      throw new TypeError("fetch failed");
    },
  });
  await run(backend).catch((error: { code: string }) => assert.equal(error.code, "lost", `${by}: ${String(error)}`));
  assert.ok(made, by);
  return made;
}

test("each method of a backend makes its calls; Go compares them with the OpenAPI document", async () => {
  const made: Promise<Made>[] = [];
  for (const [type, table, object] of [
    ["Backend", calls, (backend: Backend) => backend],
    ["Kit", kit, (backend: Backend) => backend.kit],
  ] as const) {
    for (const [name, lists] of Object.entries(table)) {
      for (const args of lists) {
        made.push(
          make(`${type}.${name}`, (backend) => {
            const methods = object(backend) as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
            return methods[name]!(...args);
          }),
        );
      }
    }
  }
  const file = process.env["SWITCHBOARD_CALLS"];
  const all = await Promise.all(made);
  if (file) writeFileSync(file, JSON.stringify(all));
});
