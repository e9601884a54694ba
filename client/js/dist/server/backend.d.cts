import { type ApiOptions, type Call } from "../api.cjs";
import type { Json, JsonInput } from "../wire.cjs";
import type { ChannelInfo, ClientInfo, FieldPage, Erase, Erased, HistoryPage, PresencePage, Revoked, RevokeOptions, ServerInfo, StoredFields, SubscriptionsChanged, UserBudget, UserInfo } from "./answers.cjs";
import { Kit } from "./kit.cjs";
import type { CheckQuery, DeadLetter, HealthReport, QueuePage, Rights, SelfInfo, ServerStats, WebhooksInfo } from "./operator.cjs";
import type { Push, PushAnswer, PushError } from "./push.cjs";
export interface BackendOptions extends ApiOptions {
    /** For how long a call that is safe to repeat is repeated, in ms. Absent: 10,000. */
    retryFor?: number;
}
export interface CallOptions extends Call {
    /**
     * A second execution changes nothing. Absent: as the API describes the call; calls with GET are
     * repeatable.
     */
    repeatable?: boolean;
}
type Page = {
    limit?: number;
    cursor?: string;
};
/** Backend calls the HTTP API of one or several brokers. A refusal is an ApiError. */
export declare class Backend {
    /** Rooms, holds, boards, accounts and scenes. */
    readonly kit: Kit;
    constructor(urls: string | string[], options?: BackendOptions);
    /** Pushes to one kind of target. With several targets, look at the `error` of each result. */
    push(push: Push): Promise<PushAnswer>;
    /** Up to 1000 pushes. Each item of `results` is the answer to one push. */
    batch(messages: Push[]): Promise<{
        results: (PushAnswer | {
            error: PushError;
        })[];
    }>;
    channels(query?: Page & {
        prefix?: string;
    }): Promise<{
        channels: {
            channel: string;
            subscribers: number;
        }[];
        cursor?: string;
        partial?: boolean;
    }>;
    channel(channel: string): Promise<ChannelInfo>;
    /** Stored messages above `after`. With `wait` (seconds), an empty page waits for the next one. */
    history(channel: string, query?: {
        after?: number;
        limit?: number;
        wait?: number;
    }): Promise<HistoryPage>;
    presence(channel: string, query?: Page): Promise<PresencePage>;
    /** A page of the fields of a channel. */
    state(channel: string, query?: Page & {
        prefix?: string;
    }): Promise<FieldPage>;
    /** A few fields of up to 100 channels. */
    queryState(channels: string[], fields: string[]): Promise<{
        channels: StoredFields[];
    }>;
    user(user: string): Promise<UserInfo>;
    /**
     * The users that are online. `count` counts a user on two servers twice. `distinct`, of the first page, counts it once; if it
     * is not `exact`, with a standard error of 0.8 %.
     */
    users(query?: Page): Promise<{
        count: number;
        connections: number;
        distinct?: number;
        exact?: boolean;
        users: {
            user: string;
            clients: string[];
        }[];
        cursor?: string;
    }>;
    /** Whether up to 1000 users are online. */
    online(users: string[]): Promise<{
        users: {
            user: string;
            online: boolean;
        }[];
    }>;
    client(client: string): Promise<ClientInfo>;
    /**
     * Messages above `after` that wait for a client. None is acknowledged. With `wait` (seconds), an
     * empty page waits for the next one.
     */
    queue(client: string, query?: {
        after?: number;
        limit?: number;
        wait?: number;
    }): Promise<QueuePage>;
    /**
     * Refuses the tokens of a user that were issued before a time, absent: now. Connections that used
     * them are closed as `expired`. The key needs the scope admin.
     */
    revokeUser(user: string, options?: RevokeOptions): Promise<Revoked>;
    /** Like revokeUser, for one client of the user, by its full id. */
    revokeClient(client: string, options?: RevokeOptions): Promise<Revoked>;
    /**
     * Subscribes all clients of a user to channels, also those that connect later. With `after`, the
     * first subscription of each client begins after this message of one channel, or with 0 at the
     * oldest one that is kept. The key needs the scope admin.
     */
    subscribeUser(user: string, channels: string[], options?: {
        after?: number;
    }): Promise<SubscriptionsChanged>;
    /** Like subscribeUser, for one client, by its full id. */
    subscribeClient(client: string, channels: string[], options?: {
        after?: number;
    }): Promise<SubscriptionsChanged>;
    /** Ends subscriptions of all clients of a user, also of those that are away. */
    unsubscribeUser(user: string, channels: string[]): Promise<SubscriptionsChanged>;
    /** Like unsubscribeUser, for one client, by its full id. */
    unsubscribeClient(client: string, channels: string[]): Promise<SubscriptionsChanged>;
    /** How many objects a user has, and may have. Kinds that the broker does not have are missing. */
    budget(user: string): Promise<UserBudget>;
    /**
     * Removes what a user has in the kit, because the user does not exist any more: memberships and
     * empty rooms, scores, avatars and session documents. `removed` has the numbers by kind.
     */
    forgetUser(user: string): Promise<{
        user: string;
        removed: Record<string, number>;
    }>;
    disconnectUser(user: string): Promise<{
        disconnected: number;
    }>;
    disconnectClient(client: string): Promise<{
        disconnected: number;
    }>;
    servers(): Promise<{
        servers: ServerInfo[];
    }>;
    /** The instance that answers, and what the key may do. Every key may call it. */
    self(): Promise<SelfInfo>;
    /** The figures of all live instances. partial: one did not answer and is missing. */
    stats(): Promise<{
        servers: ServerStats[];
        partial: boolean;
    }>;
    /** Explains what a client may do on a channel. A bad token is no refusal: see Rights.error. */
    check(query: CheckQuery): Promise<Rights>;
    /** The state of the events for your backend; not_found if the broker sends none. */
    webhooks(): Promise<WebhooksInfo>;
    /** Events that are no longer sent. A page may be short, and have a `cursor`. */
    deadLetters(query?: Page): Promise<{
        letters: DeadLetter[];
        cursor?: string;
    }>;
    /** Sends the dead letters again. The key needs the scope admin. */
    retryDeadLetters(): Promise<{
        retried: number;
    }>;
    /** Sends one dead letter again. The key needs the scope admin. */
    retryDeadLetter(event: string): Promise<void>;
    /** Drops one dead letter: its event is never sent. The key needs the scope admin. */
    dropDeadLetter(event: string): Promise<void>;
    /** What needs the attention of an operator, on all instances and in Redis. */
    health(): Promise<HealthReport>;
    /**
     * Erases a message of a channel: its data and its author leave the store, the histories and the memory of all
     * brokers. Clients receive its id. Its changes of fields stay. not_found if the channel has no such message.
     */
    erase(message: Erase): Promise<Erased>;
    /** Says that your backend has written messages to the queues of these in Redis. */
    notify(queues: {
        channels?: string[];
        clients?: string[];
    }): Promise<void>;
    /** Answers a request that a worker has taken from Redis. */
    reply(client: string, ref: number, data: JsonInput): Promise<void>;
    /** Any call of the API: the path has its names escaped. */
    call<Answer = Json>(method: string, path: string, options?: CallOptions): Promise<Answer>;
}
export {};
