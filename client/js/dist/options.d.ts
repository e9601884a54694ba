import type { Channel } from "./channel.js";
import type { SocketClass, Times } from "./connection.js";
import type { SwitchboardError } from "./errors.js";
import type { FeedEvents } from "./feed.js";
import type { AppState } from "./foreground.js";
import type { Loaded } from "./load.js";
import type { Storage } from "./storage.js";
import type { TokenSource } from "./token.js";
import type { CloseCode, JsonInput, Stored } from "./wire.js";
export interface Logger {
    debug?(text: string): unknown;
    info?(text: string): unknown;
    warn?(text: string): unknown;
}
export interface Options extends Partial<Times> {
    /** A token, or a function that returns a new one. Absent: an open broker. */
    token?: TokenSource;
    /**
     * The longest wait for the token function in ms, 0 for no limit. After it, the function is called
     * again, with the backoff of a reconnect. Absent: 30,000.
     */
    tokenTimeout?: number;
    /** The name of this device. Absent or "auto": a random one, kept in `storage`. */
    client?: string;
    /** The user, in an open broker only. */
    user?: string;
    /** What other clients see of this one, in an open broker only. */
    info?: JsonInput;
    /**
     * When a message of the inbox is acknowledged. "client": when all handlers have succeeded; one
     * that fails is called again. "auto": when all have returned and their promises are settled, also
     * if one has failed. Absent: "client".
     */
    ack?: "client" | "auto";
    /** The WebSocket class. Absent: the global one. Node before 22 needs that of the package `ws`. */
    WebSocket?: SocketClass;
    /** Keeps positions and the client id, for example in localStorage. Absent: nothing is kept. */
    storage?: Storage;
    /** The key in `storage`. Absent: "switchboard". */
    storageKey?: string;
    /** Receives reconnects and the like, for example `console`. Absent: nothing is logged. */
    logger?: Logger;
    /**
     * The AppState of React Native. The client connects at once when the application becomes active,
     * and stores positions when it becomes inactive. Pages need nothing.
     */
    appState?: AppState;
    /** The longest wait for an answer in ms, 0 for no limit. Absent: 30,000. */
    timeout?: number;
    /** The bounds in ms of the random delay before an attempt. Absent: 200 and 20,000. */
    backoffMin?: number;
    backoffMax?: number;
    /** false: connect with `connect()`. Absent: at once. */
    autoConnect?: boolean;
}
/** A connection that was accepted. */
export interface Connected {
    url: string;
    /** The client id, with the user. */
    client: string;
    user: string | undefined;
    server: string;
    /** The number of messages that waited in the inbox. */
    queued: number;
}
/** A connection or an attempt that has ended. */
export interface Disconnected {
    code: CloseCode | "lost" | "token";
    message: string;
    /** The time until the next attempt, in ms; 0 if one is being made. */
    retryIn: number;
}
export interface SwitchboardEvents {
    connecting: [url: string];
    connected: [connected: Connected];
    disconnected: [disconnected: Disconnected];
    /**
     * Your backend has subscribed this client to a channel. It stays subscribed over all reconnects,
     * until `unsubscribe` or its event `unsubscribed`.
     */
    subscribed: [channel: Channel];
    /** There will be no further attempt: `close` was called, or the broker forbids it. */
    closed: [reason: {
        code: CloseCode | "closed" | "token";
        message: string;
    }];
    /** A handler has thrown, a token could not be renewed, or the storage has failed. */
    error: [error: unknown, context: {
        event: string;
        channel?: string | undefined;
    }];
}
/** How to subscribe to a channel. */
export interface ChannelOptions<Snapshot extends Loaded = Loaded> {
    /** Subscribe at once. Absent: true. */
    subscribe?: boolean;
    /**
     * Where a new subscription starts: the last id seen; 0 is the beginning. Absent: the stored
     * position, or now.
     */
    after?: number;
    /** Keeps `state`: all fields (true), or those that begin with a prefix. */
    state?: boolean | string;
    /** Keeps `members`. */
    presence?: boolean;
    /**
     * Reads the application's data for the event `loaded`, when the subscription begins and after a
     * gap. Then the messages that are not in the data follow, none is missing. If it fails, it is
     * called again after a delay.
     */
    load?: () => Snapshot | Promise<Snapshot>;
}
/** The start of a subscription, or its continuation after a reconnect. */
export interface Subscribed {
    id: number | undefined;
    /** false: messages after the last position are missing. A `gap` says which. */
    recovered: boolean;
}
export type ChannelEvents<Data, Snapshot = Loaded> = FeedEvents<Data> & {
    /** The result of `load`. The messages that follow are not in it. */
    loaded: [snapshot: Snapshot];
    subscribed: [subscribed: Subscribed];
    /** The broker has refused or ended the subscription. `subscribe` may be called again. */
    unsubscribed: [error: SwitchboardError];
};
export interface History<Data> {
    messages: Stored<Data>[];
    /** The channel holds messages after the last one. */
    more: boolean;
    /**
     * The id for the `after` of the next page. A page may have no messages and `more`, if you see none of many messages that
     * the channel holds.
     */
    last: number;
    /** false: messages after `after` are missing. */
    recovered: boolean;
}
