import type { Member, Stored, WireField } from "../wire.cjs";
import type { PushError } from "./push.cjs";
export interface ChannelInfo {
    channel: string;
    servers: number;
    subscribers: number;
    id: number;
    messages: number;
    /** An instance did not answer: the numbers are lower bounds. */
    partial?: boolean;
}
/** A message of a history, as only the backend sees it. */
export interface StoredMessage extends Stored {
    /** The id of the client that published it, if `by` is not that id. */
    from?: string;
    /** The id of the client that does not receive it. */
    exclude?: string;
}
/** A message of a channel to erase. */
export interface Erase {
    channel: string;
    id: number;
    /** true: answer after a replica of Redis has erased it. */
    durable?: boolean;
}
export interface Erased {
    channel: string;
    id: number;
    /** When it was erased, in ms since 1970. */
    erased: number;
    /** The id of the report that clients receive. Absent if it is not known any more. */
    report?: number;
    /** Live brokers with subscribers. */
    servers: number;
    /** true: it was erased before. */
    duplicate?: boolean;
}
export interface HistoryPage {
    channel: string;
    messages: StoredMessage[];
    more: boolean;
    recovered: boolean;
    /** The position after the page: the next `after`. */
    id?: number;
}
export interface PresencePage {
    channel: string;
    count: number;
    /** The number of different users. Only the first page has it. */
    users?: number;
    clients: Member[];
    /** The cursor of the next page. The last page has none. */
    cursor?: string;
    /** The former name of `cursor`, with the same value. */
    next?: string;
}
/** The fields of a channel: each one is [id, value, until?, "away"?]. */
export interface StoredFields {
    channel: string;
    id: number;
    fields: Record<string, WireField | null>;
    /** The channel cannot be read. */
    error?: PushError;
}
export interface FieldPage extends Omit<StoredFields, "error"> {
    cursor?: string;
}
export interface UserClient {
    client: string;
    server?: string;
    online: boolean;
    since?: number;
    queued: number;
}
export interface RevokeOptions {
    /** A time in ms since 1970, or a Date. */
    before?: number | Date;
    /** Wait until a replica has it. */
    durable?: boolean;
}
export interface Revoked {
    /** The time in force, perhaps that of an earlier call, in ms since 1970. */
    before: number;
    /** When the store forgets it, in ms since 1970. */
    until: number;
    /** The connections that were closed. */
    disconnected: number;
    /** Servers that did not answer in time. They close their connections at their next beat. */
    pending?: number;
}
/** The answer to a call that subscribes or unsubscribes clients. */
export interface SubscriptionsChanged {
    /** The connected clients that have applied it. */
    clients: number;
    /** What connected clients could not be subscribed to. */
    refused: {
        client: string;
        channel: string;
        code: string;
        message: string;
    }[];
    /** Servers that did not answer in time. They apply it after their next beat. */
    pending?: number;
    /** When the store forgets it, unless a client renews it, in ms since 1970. */
    until: number;
}
/** How many objects a user has made as a client, and may make, by kind: rooms, boards and avatars. */
export interface UserBudget {
    user: string;
    objects: Record<string, {
        used: number;
        max: number;
    }>;
    /** What the user's publishes have used of the limits `bytes` and `channels`, on all instances. It is refilled with time. */
    stored: Record<string, {
        used: number;
        max: number;
    }>;
}
export interface UserInfo {
    user: string;
    online: boolean;
    /** Tokens that were issued before this time, in ms since 1970, are revoked. */
    revoked?: number;
    clients: UserClient[];
}
export interface ClientInfo extends UserClient {
    user?: string;
    address?: string;
    /** The end of the token, in seconds since 1970. */
    expires?: number;
    channels?: string[];
}
export interface ServerInfo {
    server: string;
    host: string;
    version: string;
    started_at: number;
    last_active: number;
    connections: number;
    users: number;
    channels: number;
    [more: string]: unknown;
}
