import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Backend, type Push } from "../src/server/index.js";
import { kit } from "./kitcalls.gen.js";

type Methods<T> = { [M in keyof T as T[M] extends (...args: never[]) => unknown ? M : never]: T[M] };

/** The calls of each method: the lists of their arguments, one of them with everything that can be sent. */
export type Calls<T> = {
  [M in keyof Methods<T>]: Methods<T>[M] extends (...args: infer Args) => unknown ? Args[] : never;
};

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
