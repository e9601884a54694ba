import type { Json } from "../wire.js";
import { bytesOf } from "./token.js";

/** The headers of a request: those of Node, of fetch, or a plain object. */
export type SignedHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/**
 * An event of a webhook. Drop events whose `id` you have seen; ignore types that you do not know.
 */
export type WebhookEvent = { id: string; at: number } & (
  | { type: "user_online" | "user_offline"; user: string }
  | { type: "channel_occupied" | "channel_vacated"; channel: string }
  | { type: "message_undelivered"; user?: string; clients: { client: string; id: number }[]; data: Json }
  | {
      type: "room_ended";
      room: string;
      reason: "empty" | "finished" | "deleted";
      final: Json;
      fields?: Record<string, Json>;
    }
  | {
      type: "fields_gone";
      channel: string;
      message: number;
      gone?: Record<string, "expired" | "left">;
      cleared?: boolean;
    }
  | { type: "hold_expired"; resource: string; hold: string; user?: string; seats: string[] }
);

/** A request of a client, as the broker posts it to `requests.url`. */
export interface BackendRequest<Query = Json> {
  ref: number;
  client: string;
  user?: string;
  server: string;
  query: Query;
  context: { address: string };
  queryAt: number;
}

/**
 * Verifies the signature of a webhook or of a request, over the body as it was received. One of the
 * secrets must fit. `tolerance` is the accepted age in seconds; absent: 300.
 */
export async function verifySignature(
  secrets: string | string[],
  headers: SignedHeaders,
  body: string | Uint8Array,
  tolerance = 300,
): Promise<boolean> {
  const timestamp = header(headers, "switchboard-timestamp");
  if (!/^\d+$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) return false;
  const bytes = bytesOf(body);
  const prefix = bytesOf(`${timestamp}.`);
  const signed = new Uint8Array(prefix.length + bytes.length);
  signed.set(prefix);
  signed.set(bytes, prefix.length);
  const given = header(headers, "switchboard-signature")
    .split(",")
    .map((s) => /^\s*v1=([0-9a-f]{64})\s*$/.exec(s)?.[1]);
  for (const secret of [secrets].flat()) {
    const key = await crypto.subtle.importKey("raw", bytesOf(secret), { name: "HMAC", hash: "SHA-256" }, false, [
      "verify",
    ]);
    for (const hex of given) {
      if (hex && (await crypto.subtle.verify("HMAC", key, bytesOfHex(hex), signed))) return true; // in constant time
    }
  }
  return false;
}

/**
 * Returns the JSON of a signed body: {events: WebhookEvent[]} or a BackendRequest. It throws if the
 * signature is not valid.
 */
export async function parseSigned<Body = { events: WebhookEvent[] }>(
  secrets: string | string[],
  headers: SignedHeaders,
  body: string | Uint8Array,
  tolerance?: number,
): Promise<Body> {
  if (!(await verifySignature(secrets, headers, body, tolerance))) throw new Error("the signature is not valid");
  return JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body)) as Body;
}

function header(headers: SignedHeaders, name: string): string {
  if (typeof headers.get === "function") return headers.get(name) ?? "";
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return String(found ?? "");
}

function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(hex.match(/../g)!.map((pair) => parseInt(pair, 16)));
}
