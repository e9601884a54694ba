import type { ErrorCode, Incoming, WireField } from "./wire.js";
/** The reasons for which this library rejects a call without an answer of the broker. */
export type LocalCode = "unknown_outcome" | "not_sent" | "queue_full" | "closed" | "unsubscribed" | "token" | "lost";
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
export declare class SwitchboardError extends Error {
    readonly name = "SwitchboardError";
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
    constructor(code: string, message: string, from?: Partial<Incoming>, cause?: unknown);
}
/** Throw it from the token function when there will be no token: the Switchboard then closes. */
export declare class SignedOutError extends Error {
    readonly name = "SignedOutError";
}
/** refusal returns the error of an `error` message. */
export declare function refusal(m: Incoming): SwitchboardError;
/** entryOf returns the entry of a field on the wire. */
export declare function entryOf(field: WireField): Entry;
/** What to do after these ends. */
export declare const remedies: Record<string, string>;
