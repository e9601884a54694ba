/** The messages of the protocol, version 1, as docs/protocol.md describes them. */
/** A JSON value from the network. Give the type parameters of a channel to have a better type. */
export type Json = null | boolean | number | string | Json[] | {
    [name: string]: Json;
};
/** A value to send as JSON. An `object` may have an interface as its type, or a `toJSON`. */
export type JsonInput = null | boolean | number | string | object;
/** What a caller may send where `Value` arrives: without a type of the application, any JSON. */
export type Sent<Value> = Json extends Value ? JsonInput : Value;
/** The reasons for which the broker refuses one message. */
export type ErrorCode = "bad_request" | "unauthorized" | "forbidden" | "not_found" | "too_large" | "rate_limited" | "unavailable" | "conflict" | "full" | "limit" | "locked" | "bad_code" | "expired" | "timeout";
/** The reasons for which the broker ends a connection. */
export type CloseCode = "draining" | "superseded" | "unauthorized" | "expired" | "disconnected" | "bad_request" | "slow" | "idle" | "overloaded";
/** The codes with which the broker closes a WebSocket, from 4001. */
export declare const closeCodes: readonly CloseCode[];
/** A field on the wire: its id, value, end, and whether its owners have left. */
export type WireField = [id: number, value?: Json, until?: number, away?: "away"];
/** The changes of fields that a message has made. They apply in the order of these members. */
export interface Changes {
    /** All fields were removed. */
    cleared?: boolean;
    /** Fields that ended by themselves: their lease ended, or their owners have left. */
    gone?: Record<string, "expired" | "left">;
    /** Fields that a change removed. */
    del?: string[];
    /** New values. Each one has the id of the message, and no end unless `until` has one. */
    set?: Record<string, Json>;
    /** New ends in ms since 1970, on the store's clock; 0 for none. */
    until?: Record<string, number>;
    /** Fields whose owners have left, with the time at which they end; 0 if they stay. */
    away?: Record<string, number>;
    /** Fields of which an owner has come back. */
    back?: string[];
}
/** A client in the presence of a channel. */
export interface Member {
    /**
     * In a channel that shows aliases, such as a room, the alias of a user: of all its clients. There
     * is no user or info.
     */
    client: string;
    user?: string;
    info?: Json;
    /** When it joined, in ms since 1970 on the store's clock. Only pages have it. */
    since?: number;
    /** The value that it shows: see Channel.here. */
    here?: Json;
}
/** A message of a history. */
export interface Stored<Data = Json> extends Changes {
    id: number;
    data?: Data;
    by?: string;
    /** The id of the client that published the message, if `by` is not that id. */
    from?: string;
    /** When the message was erased, in ms since 1970. Only its changes of fields are left. */
    erased?: number;
    /** The id of a message that was erased. The entry has nothing else. */
    erase?: number;
}
/** What a connection may send. Absent: no limit. Rates have bursts of four seconds. */
export interface Limits {
    /** Bytes of one message. */
    message?: number;
    channels?: number;
    message_rate?: number;
    byte_rate?: number;
    request_rate?: number;
    /** Messages without an answer, and their bytes. */
    waiting?: number;
    waiting_bytes?: number;
}
/** A message from the broker. Its type decides which members it has. */
export interface Incoming extends Omit<Member, "client">, Changes {
    type: string;
    ref?: number;
    client?: string;
    secret?: string;
    server?: string;
    queued?: number;
    channel?: string;
    after?: number;
    id?: number;
    recovered?: boolean;
    data?: Json;
    by?: string;
    erase?: number;
    alias?: string;
    messages?: Stored[];
    more?: boolean;
    token_ignored?: boolean;
    first?: boolean;
    fields?: Record<string, WireField | null>;
    cursor?: string;
    group?: string;
    max?: number;
    code?: string;
    message?: string;
    retry?: boolean;
    limits?: Limits;
    reconnect?: boolean;
    after_ms?: number;
    clients?: Member[];
    next?: string;
    count?: number;
    users?: number;
    joined?: Member[];
    left?: Member[];
}
/** A message to the broker. */
export interface Outgoing {
    type: string;
    ref?: number;
    channel?: string;
    [member: string]: any;
}
