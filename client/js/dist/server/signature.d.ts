import type { Json } from "../wire.js";
/** The headers of a request: those of Node, of fetch, or a plain object. */
export type SignedHeaders = {
    get(name: string): string | null;
} | Record<string, string | string[] | undefined>;
/**
 * An event of a webhook. Drop events whose `id` you have seen; ignore types that you do not know.
 */
export type WebhookEvent = {
    id: string;
    at: number;
} & ({
    type: "user_online" | "user_offline";
    user: string;
} | {
    type: "channel_occupied" | "channel_vacated";
    channel: string;
} | {
    type: "message_undelivered";
    user?: string;
    clients: {
        client: string;
        id: number;
    }[];
    data: Json;
} | {
    type: "room_ended";
    room: string;
    reason: "empty" | "finished" | "deleted";
    final: Json;
    fields?: Record<string, Json>;
} | {
    type: "fields_gone";
    channel: string;
    message: number;
    gone?: Record<string, "expired" | "left">;
    cleared?: boolean;
} | {
    type: "hold_expired";
    resource: string;
    hold: string;
    user?: string;
    seats: string[];
});
/** A request of a client, as the broker posts it to `requests.url`. */
export interface BackendRequest<Query = Json> {
    ref: number;
    client: string;
    user?: string;
    server: string;
    query: Query;
    context: {
        address: string;
    };
    queryAt: number;
}
/**
 * Verifies the signature of a webhook or of a request, over the body as it was received. One of the
 * secrets must fit. `tolerance` is the accepted age in seconds; absent: 300.
 */
export declare function verifySignature(secrets: string | string[], headers: SignedHeaders, body: string | Uint8Array, tolerance?: number): Promise<boolean>;
/**
 * Returns the JSON of a signed body: {events: WebhookEvent[]} or a BackendRequest. It throws if the
 * signature is not valid.
 */
export declare function parseSigned<Body = {
    events: WebhookEvent[];
}>(secrets: string | string[], headers: SignedHeaders, body: string | Uint8Array, tolerance?: number): Promise<Body>;
