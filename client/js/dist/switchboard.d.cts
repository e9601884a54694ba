import { Channel, type ChannelOptions } from "./channel.cjs";
import { type SocketClass, type Times } from "./connection.cjs";
import { Emitter } from "./emitter.cjs";
import { Feed } from "./feed.cjs";
import { Inbox } from "./inbox.cjs";
import { type Storage } from "./storage.cjs";
import { type TokenSource } from "./token.cjs";
import { User } from "./user.cjs";
import type { CloseCode, Json } from "./wire.cjs";
export interface Logger {
    debug?(text: string): unknown;
    info?(text: string): unknown;
    warn?(text: string): unknown;
}
export interface Options extends Partial<Times> {
    /** A token, or a function that returns a new one. Absent: an open broker. */
    token?: TokenSource;
    /** The name of this device. Absent or "auto": a random one, kept in `storage`. */
    client?: string;
    /** The user, in an open broker only. */
    user?: string;
    /** What other clients see of this one, in an open broker only. */
    info?: Json;
    /** "auto": the broker removes a message of the inbox when it has sent it. Absent: "client". */
    ack?: "client" | "auto";
    /** The WebSocket class. Absent: the global one. Node before 22 needs that of the package `ws`. */
    WebSocket?: SocketClass;
    /** Keeps positions and the client id, for example in localStorage. Absent: nothing is kept. */
    storage?: Storage;
    /** The key in `storage`. Absent: "switchboard". */
    storageKey?: string;
    /** Receives reconnects and the like, for example `console`. Absent: nothing is logged. */
    logger?: Logger;
    /** The longest wait for an answer in ms, 0 for no limit. Absent: 30,000. */
    timeout?: number;
    /** The bounds in ms of the random delay before a reconnect. Absent: 200 and 20,000. */
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
    /** The time until the next attempt, in ms. */
    retryIn: number;
}
export interface SwitchboardEvents {
    connecting: [url: string];
    connected: [connected: Connected];
    disconnected: [disconnected: Disconnected];
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
/** Switchboard is one logical connection to a broker. It reconnects until it is closed. */
export declare class Switchboard extends Emitter<SwitchboardEvents> {
    /** "idle" before `connect`, "waiting" between two attempts. */
    phase: "idle" | "connecting" | "connected" | "waiting" | "closed";
    /** The client id, with the user. Undefined before the first connection. */
    client: string | undefined;
    /** Messages to this device. */
    readonly inbox: Inbox;
    /** Messages to all clients. */
    readonly all: Feed;
    private readonly _urls;
    private readonly _o;
    private readonly _channels;
    private readonly _users;
    private readonly _tokens;
    private readonly _backoff;
    private readonly _instance;
    private _saved;
    private _next;
    private _attempt;
    private _connection;
    private _connectedAt;
    private _timer;
    private _renewTimer;
    private _waitsForServer;
    private _unlisten;
    constructor(urls: string | string[], options?: Options);
    /** Connects, unless `autoConnect` has done so. */
    connect(): void;
    /** Acknowledges what is handled, and ends the connection for good. */
    close(): Promise<void>;
    /**
     * Connects now instead of after the backoff, or verifies the connection. In a browser this happens
     * when the page becomes visible or the network returns. Call it elsewhere, for example from the
     * AppState of React Native. A delay that the broker has asked for stays.
     */
    wake(): void;
    /** A channel, subscribed at once unless `subscribe` is false. The same name is the same channel. */
    channel<Data = Json, Fields extends object = Record<string, Json>>(name: string, options?: ChannelOptions): Channel<Data, Fields>;
    /** Whether a user is online. */
    user(name: string): User;
    /** Asks your backend, and returns its answer. */
    request<Answer = Json>(data: Json, options?: {
        timeout?: number;
    }): Promise<Answer>;
    /** Calls a method of the broker, and returns its answer. */
    call<Answer = Json>(method: string, data?: Json, options?: {
        timeout?: number;
    }): Promise<Answer>;
    /** Replaces the token, of this connection and of later ones. */
    refresh(token: string): Promise<void>;
    private _report;
    private _dial;
    private _hello;
    private _receive;
    private _connected;
    private _ended;
    private _disconnect;
    private _stop;
    private _scheduleRenewal;
    /** Renews the token before it expires. If that fails, the connection stays until it does. */
    private _renew;
    private _snapshot;
    private _listen;
}
