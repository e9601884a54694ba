// push.ts
import createClient from "openapi-fetch";
import type { paths } from "./switchboard.js";

const api = createClient<paths>({
  baseUrl: process.env.SWITCHBOARD_URL ?? "http://127.0.0.1:8080",
  headers: { Authorization: `Bearer ${process.env.SWITCHBOARD_KEY ?? ""}` },
});

const message = { channel: "news", data: { hello: 1 }, key: crypto.randomUUID() };
const push = await api.POST("/v1/push", { body: message });
if (push.error) throw new Error(push.error.error.message);
console.log("stored as", push.data.results[0]?.id);

const history = await api.GET("/v1/channels/{channel}/history", {
  params: { path: { channel: "news" }, query: { limit: 10 } },
});
for (const stored of history.data?.messages ?? []) console.log(stored.id, JSON.stringify(stored.data));
