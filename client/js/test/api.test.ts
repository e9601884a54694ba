import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Accounts } from "../src/kit/accounts.js";
import type { Account } from "../src/kit/types.gen.js";
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

test("a login gives each token once; its own calls use the token while it is fresh", async () => {
  const calls: string[] = [];
  let n = 0;
  const session = await new Accounts("http://a", {
    fetch: async (url, init) => {
      const { pathname } = new URL(url as string);
      calls.push(pathname.slice("/v1/accounts/".length));
      if (pathname.endsWith("/me"))
        return answer(200, { id: new Headers(init!.headers as Record<string, string>).get("Authorization") });
      return answer(200, { account: { id: "u1" }, token: `t${++n}`, expires_in: 100, renewal: "r" });
    },
  }).resume("r");
  // A Switchboard asks again when a token is refused, also if it is fresh by the device's clock.
  assert.deepEqual([await session.token(), await session.token()], ["t1", "t2"]);
  assert.equal((await session.me()).id, "Bearer t2");
  tick(70_000);
  assert.equal((await session.me()).id, "Bearer t3");
  assert.equal(await session.token(), "t3");
  assert.deepEqual(calls, ["renew", "renew", "me", "renew", "me"]);
});

test("a guest shows its renewal token, an account with a password does not", async () => {
  const bodies: unknown[] = [];
  const account: Account = { id: "u1", state: "open", created: 1, version: 1 };
  const session = await new Accounts("http://a", {
    fetch: async (url, init) => {
      if ((url as string).endsWith("/renew"))
        return answer(200, { account, token: "t", expires_in: 100, renewal: "next" });
      bodies.push(JSON.parse(init!.body as string));
      return answer(200, { id: "u1", name: "amy" });
    },
  }).resume("r");
  await session.patch({ nickname: "Amy" });
  session.account = account;
  await session.patch({ name: "amy", password: "a long secret" });
  await session.delete("a long secret");
  session.account = account;
  await session.delete();
  assert.deepEqual(bodies, [
    { nickname: "Amy" },
    { name: "amy", password: "a long secret", renewal: "next" },
    { password: "a long secret" },
    { password: "", renewal: "next" },
  ]);
});

test("a change of the account names the version that it must have", async () => {
  const conditions: (string | null)[] = [];
  const session = await new Accounts("http://a", {
    fetch: async (url, init) => {
      const account: Account = { id: "u1", state: "open", created: 1, version: 7 };
      if ((url as string).endsWith("/renew"))
        return answer(200, { account, token: "t", expires_in: 100, renewal: "next" });
      conditions.push(new Headers(init!.headers).get("If-Match"));
      return answer(200, account);
    },
  }).resume("r");
  await session.patch({ nickname: "Amy" }, { ifMatch: session.account.version });
  await session.patch({ nickname: "Amy" }, { ifMatch: "*" });
  await session.patch({ nickname: "Amy" });
  assert.deepEqual(conditions, ['"7"', "*", null]);
});

test("a body that is no JSON is the error of the caller, and is not repeated", async () => {
  let calls = 0;
  const backend = new Backend("http://a", { fetch: async () => (calls++, new Response("{}")) });
  await assert.rejects(backend.push({ channel: "c", data: 1n as never, key: "k" }), {
    code: "bad_request",
    message: /BigInt/,
  });
  assert.equal(calls, 0);
});
