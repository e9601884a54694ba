import type { Json } from "../wire.js";
import type { StoredMessage } from "./answers.js";
export type Scope = "push" | "read" | "admin";
/** The instance that answers, and what the key of the call may do. */
export interface SelfInfo {
    server: string;
    version: string;
    started_at: number;
    /** No API keys are configured. */
    open: boolean;
    /** Keys of tokens are configured. */
    tokens: boolean;
    key: {
        name: string;
        scopes: Scope[];
    };
    /** false: the store is in memory. */
    redis: boolean;
    /** The systems of the kit that are on. */
    kit: string[];
    webhooks: boolean;
}
/** How long something took: quantiles of about the last 10 s, in seconds. */
export interface Duration {
    count: number;
    p50?: number;
    p99?: number;
}
/** The figures of an instance. Those from `accepted` to `push_errors` count since its start. */
export interface ServerStats {
    server: string;
    at: number;
    started_at: number;
    connections: number;
    users: number;
    channels: number;
    subscriptions: number;
    accepted: number;
    closed: number;
    delivered: number;
    pushes: number;
    push_errors: number;
    append: Duration;
    drain: Duration;
    /** Memory in bytes. */
    rss: number;
    max_connections?: number;
    /** When the first certificate of its ports ends, in ms since 1970. */
    certificate_ends?: number;
}
/** Messages that wait for a client, the oldest first. */
export interface QueuePage {
    client: string;
    messages: StoredMessage[];
    /** The next `after`. */
    id: number;
    more: boolean;
    recovered: boolean;
    /** The number of all messages in the queue. */
    count: number;
}
/** The events for your backend. */
export interface WebhooksInfo {
    waiting: number;
    dead: number;
    /** Events that were lost because the dead letters were full. */
    dropped: number;
    /** When the oldest waiting event was made, in ms since 1970. */
    oldest?: number;
    endpoints: {
        url: string;
        events: string[];
    }[];
    /** Failed attempts since the last successful one. */
    attempts: number;
    /** The next attempt after a failed one, in ms since 1970. */
    retry_at?: number;
    /** The last attempt: the status of the answer (200 for every 2xx), or why there was none. */
    last?: {
        at: number;
        status?: number;
        error?: string;
    };
}
/** What needs the attention of an operator. */
export interface HealthReport {
    status: "healthy" | "warning" | "problem";
    at: number;
    /** The most urgent first. */
    findings: Finding[];
}
export interface Finding {
    level: "problem" | "warning";
    /** One of the codes in docs/operations.md. */
    code: string;
    /** The server, janitor, Redis or URL that it is about. */
    subject?: string;
    /** When it happened, or will happen, in ms since 1970. */
    at?: number;
    message: string;
    remedy: string;
}
/** An event that is no longer sent. */
export interface DeadLetter {
    id?: string;
    reason: "expired" | "refused" | "gone" | "full";
    /** When it was given up, in ms since 1970. */
    at: number;
    event: Json;
}
/** Asks what a client may do: one with the token, one of the user, or one without a user. */
export interface CheckQuery {
    channel: string;
    token?: string;
    user?: string;
    /** Up to 64 fields that it wants to write. */
    fields?: string[];
}
export interface Allowed {
    allowed: boolean;
    why: string;
}
/** What a client may do on a channel, and why. Of a token that is refused only `error` is present. */
export interface Rights {
    error?: string;
    user?: string;
    client?: string;
    /** When the token was issued, in ms since 1970. */
    issued?: number;
    /** The end of the token, in ms since 1970. */
    expires?: number;
    connect?: Allowed;
    channel?: string;
    /** The rule of the namespace. */
    rule?: string;
    limits?: string;
    rights?: (Allowed & {
        right: "subscribe" | "publish" | "presence" | "history" | "state" | "durable";
    })[];
    fields?: (Allowed & {
        field: string;
        limits?: string;
    })[];
}
