import { jsonOf } from "../json.js";
import type { JsonInput } from "../wire.js";

export interface TokenClaims {
  /** The user. */
  sub: string;
  /** The client's own name, if the token is for one client only. */
  client?: string;
  /** Shown in presence, at most 1 KiB. */
  info?: Record<string, JsonInput>;
  /** Grants: words by channel or pattern, such as {"chat:42": "sub pub"}. */
  channels?: Record<string, string>;
  /** Channels to which each connection with the token is subscribed. */
  subscribe?: string[];
  aud?: string | string[];
  iss?: string;
  [claim: string]: unknown;
}

/**
 * Returns a token, signed with HS256. `expiresIn` is in seconds; absent: 300. The secret has at
 * least 32 bytes.
 */
export async function signToken(
  secret: string | Uint8Array,
  claims: TokenClaims,
  options: { expiresIn?: number; kid?: string } = {},
): Promise<string> {
  const bytes = bytesOf(secret);
  if (bytes.length < 32)
    throw new RangeError(`the secret has ${bytes.length} bytes, at least 32 are needed (RFC 7518)`);
  const iat = Math.floor(Date.now() / 1000);
  const header = { alg: "HS256", typ: "JWT", ...(options.kid !== undefined && { kid: options.kid }) };
  const signed = `${encode(header)}.${encode({ iat, exp: iat + (options.expiresIn ?? 300), ...claims })}`;
  const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, bytesOf(signed)));
  return `${signed}.${base64url(signature)}`;
}

const encode = (value: unknown) => base64url(bytesOf(jsonOf(value, "the token")));

/** base64url encodes bytes without padding, as RFC 7515 asks for. */
function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
}

/** bytesOf returns the bytes of a text in UTF-8. */
export function bytesOf(text: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof text === "string" ? new TextEncoder().encode(text) : new Uint8Array(text);
}
