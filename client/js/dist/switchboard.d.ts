import { Channel } from "./channel.js";
import { Emitter } from "./emitter.js";
import { Feed } from "./feed.js";
import { Inbox } from "./inbox.js";
import type { Loaded } from "./load.js";
import type { ChannelOptions, Options, SwitchboardEvents } from "./options.js";
import { User } from "./user.js";
import type { Json, JsonInput } from "./wire.js";
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
    constructor(urls: string | string[], options?: Options);
    /** Connects, unless `autoConnect` has done so. */
    connect(): void;
    /** Acknowledges what is handled, and ends the connection for good. */
    close(): Promise<void>;
    /**
     * Connects now instead of after the backoff, or verifies the connection. In a browser this
     * happens when the page becomes visible or the network returns, and with the option `appState`
     * when an application becomes active. Call it elsewhere. A delay that the broker has asked for
     * stays.
     */
    wake(): void;
    /**
     * A channel, subscribed at once unless `subscribe` is false. The same name is the same channel.
     */
    channel<Data = Json, Fields extends object = Record<string, Json>, Snapshot extends Loaded = Loaded>(name: string, options?: ChannelOptions<Snapshot>): Channel<Data, Fields, Snapshot>;
    /** Whether a user is online. */
    user(name: string): User;
    /** Asks your backend, and returns its answer. */
    request<Answer = Json>(data: JsonInput, options?: {
        timeout?: number;
    }): Promise<Answer>;
    /** Calls a method of the broker, and returns its answer. */
    call<Answer = Json>(method: string, data?: JsonInput, options?: {
        timeout?: number;
    }): Promise<Answer>;
    /** Replaces the token, of this connection and of later ones. */
    refresh(token: string): Promise<void>;
}
