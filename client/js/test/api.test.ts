import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Accounts } from "../src/kit/accounts.js";
import { SignedOutError } from "../src/errors.js";
import { Backend } from "../src/server/index.js";
import { stopClock, tick } from "./fake.js";

beforeEach(stopClock);
afterEach(() => mock.timers.reset());

const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });

test("calls that fail together leave the instance once", async () => {
  const asked: string[] = [];
  const backend = new Backend(["http://a", "http://b"], {
    retryFor: 0,
    fetch: async (url) => {
      const { host } = new URL(url as string);
      asked.push(host);
      if (host === "a") throw new TypeError("fetch failed");
      return answer(200, { servers: [] });
    },
  });
  const lost = { code: "lost" };
  await Promise.all([assert.rejects(backend.servers(), lost), assert.rejects(backend.servers(), lost)]);
  await backend.servers();
  assert.deepEqual(asked, ["a", "a", "b"]);
});

test("the token function of a login that has ended says so", async () => {
  let status = 200;
  const login = { account: { id: "u1" }, token: "t", expires_in: 100, renewal: "r", renewal_expires_in: 1000 };
  const refusal = { error: { code: "unauthorized", message: "log in again" } };
  const session = await new Accounts("http://a", {
    fetch: async () => answer(status, status === 200 ? login : refusal),
  }).resume("r");
  assert.equal(await session.token(), "t");
  tick(70_000);
  status = 401;
  await assert.rejects(session.token(), SignedOutError);
});

test("a call without an answer in time is lost, also where AbortSignal has no timeout", async () => {
  mock.method(AbortSignal, "timeout", () => {
    throw new TypeError("not a function");
  });
  const backend = new Backend("http://a", {
    retryFor: 0,
    timeout: 500,
    fetch: (_, init) => new Promise((_, reject) => init!.signal!.addEventListener("abort", () => reject(new Error()))),
  });
  const lost = assert.rejects(backend.servers(), { code: "lost", message: "GET /v1/servers: no answer in time" });
  tick(500);
  await lost;
  mock.restoreAll();
});
