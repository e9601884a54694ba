import type { Allowed } from "./types.gen.js";

export type Scope = "push" | "read" | "admin";

export interface RevokeOptions {
  /** A time in ms since 1970, or a Date. */
  before?: number | Date;
  /** Wait until a replica has it. */
  durable?: boolean;
}

/** What a client may do on a channel, and why. If the token is refused, only `error` and `channel` are present. */
export interface Rights {
  error?: string;
  user?: string;
  client?: string;
  /** When the token was issued, in ms since 1970. */
  issued?: number;
  /** The end of the token, in ms since 1970. */
  expires?: number;
  connect?: Allowed;
  channel: string;
  /** The rule of the namespace. */
  rule?: string;
  limits?: string;
  rights?: (Allowed & { right: "subscribe" | "publish" | "presence" | "history" | "state" | "durable" })[];
  fields?: (Allowed & { field: string; limits?: string })[];
}
