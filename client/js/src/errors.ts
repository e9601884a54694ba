import type { ErrorCode, Incoming, WireField } from "./wire.js";

/** The reasons for which this library rejects a call without an answer of the broker. */
export type LocalCode =
  | "unknown_outcome" // it was sent and the answer did not arrive. It may have been executed
  | "not_sent" // it could not be sent within its timeout
  | "queue_full" // too many calls wait to be sent. It was not sent
  | "closed" // the Switchboard is closed
  | "unsubscribed" // the channel was unsubscribed meanwhile
  | "token" // the token function failed; `cause` is its error
  | "lost"; // the connection failed or became silent

/** A field of a channel's state. */
export interface Entry<Value = unknown> {
  /** The id of the change that set the value: the field's version. */
  readonly id: number;
  readonly value: Value;
  /** When the field ends, in ms since 1970 on the store's clock. Undefined if it does not end. */
  readonly until: number | undefined;
  /** All owners of the field have left. It ends at `until` unless one comes back. */
  readonly away: boolean;
}

/**
 * The error of every rejected call and of every error event. `code` tells why; the other members
 * depend on it.
 */
export class SwitchboardError extends Error {
  override readonly name = "SwitchboardError";
  readonly code: ErrorCode | LocalCode | (string & {});
  /** The facts that a method of the broker, or your backend, gives with a refusal. */
  readonly data: unknown;
  /** With `conflict`, `full` and `limit`: the current fields; null for an absent one. */
  readonly fields: Record<string, Entry | null> | undefined;
  /** With `full`: the group, and the number of fields that it may have. */
  readonly group: string | undefined;
  readonly max: number | undefined;
  /** With `unavailable`, of a durable publish: it is stored, but no replica has confirmed it. */
  readonly id: number | undefined;
  /**
   * The same call may succeed later. It was not executed, unless the code is `timeout` or
   * `unavailable`.
   */
  readonly retryable: boolean;
  /** The least time in ms until then, if the broker has named it. */
  readonly retryIn: number | undefined;

  constructor(code: string, message: string, from: Partial<Incoming> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = from.data;
    this.fields = from.fields && entriesOf(from.fields);
    this.group = from.group;
    this.max = from.max;
    this.id = from.id;
    this.retryable = from.retry ?? /^(rate_limited|unavailable|timeout|not_sent|queue_full)$/.test(code);
    this.retryIn = from.after_ms;
  }
}

/** Throw it from the token function when there will be no token: the Switchboard then closes. */
export class SignedOutError extends Error {
  override readonly name = "SignedOutError";
}

/** refusal returns the error of an `error` message. */
export function refusal(m: Incoming): SwitchboardError {
  return new SwitchboardError(m.code ?? "", m.message ?? m.code ?? "", m);
}

/** entryOf returns the entry of a field on the wire. */
export function entryOf(field: WireField): Entry {
  return { id: field[0], value: field[1], until: field[2] || undefined, away: field[3] === "away" };
}

function entriesOf(fields: Record<string, WireField | null>): Record<string, Entry | null> {
  return Object.fromEntries(Object.entries(fields).map(([name, f]) => [name, f && entryOf(f)]));
}

/** What to do after these ends. */
export const remedies: Record<string, string> = {
  unauthorized: "Is the token one for this broker?",
  superseded: "Give each tab and each device another `client`",
  lost: "Is the URL right, with the path /ws, and does the broker allow this origin?",
  forbidden: "Does the token, or the namespace, allow it?",
  ignored: "It has no keys for tokens: set `auth` of the broker, or state a `user`",
  ended: "Handle `unsubscribed`",
};
