import type { Change } from "../change.cjs";
import type { Json, JsonInput, WireField } from "../wire.cjs";
/** Exactly one kind of target. */
export type Target = {
    channel: string;
} | {
    channels: string[];
} | {
    user: string;
} | {
    users: string[];
} | {
    client: string;
} | {
    clients: string[];
} | {
    all: true;
};
/** A push: data for a target, or a change of the fields of channels. */
export type Push = Target & Omit<Change, "timeout" | "key" | "if" | "echo"> & {
    data?: JsonInput;
    /**
     * The same key to the same target within 10 min returns the first id. With a key, a failed call
     * is repeated.
     */
    key?: string;
    /** Of fields: conditions. */
    if?: Record<string, number | true>;
    /** Parents of fields: a field ends with its parent. */
    of?: Record<string, string>;
    /**
     * Of users and clients: seconds after which your backend receives an event if no device has
     * acknowledged it.
     */
    notify_after?: number;
    /** Of channels, users and all: the id of a client that does not receive the message. */
    exclude?: string;
    /** Of users: the first acknowledgement withdraws it from the other devices. */
    first?: boolean;
};
export interface PushError {
    code: string;
    message: string;
    fields?: Record<string, WireField | null>;
    group?: string;
    max?: number;
    /** Current values of a system of the kit. */
    data?: Json;
}
/** The result for one target. One with an `error` was not accepted, unless it also has an `id`. */
export interface PushResult {
    channel?: string;
    user?: string;
    client?: string;
    all?: true;
    id?: number;
    /** Of a channel: the live servers with subscribers. */
    servers?: number;
    /** Of a client: it is bound to a live server. */
    online?: boolean;
    /** Of a user: one for each device. */
    clients?: {
        client: string;
        id: number;
        online: boolean;
        duplicate?: boolean;
    }[];
    /** The results of `add`. */
    fields?: Record<string, number>;
    duplicate?: boolean;
    error?: PushError;
}
/**
 * The answer to a push. Several targets are accepted or refused one by one: look at each `error`.
 */
export interface PushAnswer {
    results: PushResult[];
}
