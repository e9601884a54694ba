import type { Json, Switchboard } from "../index.cjs";
import { View } from "./view.cjs";
/** A hold or a sale. Times are in ms since 1970. */
export interface Hold {
    id: string;
    resource: string;
    user?: string;
    seats: string[];
    state: "held" | "sold" | "released" | "expired";
    created: number;
    /** The end of a hold, and the latest end that renewals can reach. */
    until?: number;
    last?: number;
    sold?: number;
    ended?: number;
}
export interface Resource {
    resource: string;
    version: number;
    capacity: number;
    /** Names, and ranges such as A1..A20. None if it has units. */
    seats?: string[];
    hold_ms: number;
    max_life_ms: number;
    per_user: number;
    ends?: number;
    data?: Json;
    sold: number;
    held: number;
    free: number;
}
export interface HoldRequest {
    /** Choose one that others cannot guess. Repeat a call with it if the outcome is unknown. */
    id?: string;
    /** Identifies the call instead of `id`, which the broker makes from it and the user. */
    key?: string;
    seats?: string[];
    count?: number;
    hold_ms?: number;
    durable?: boolean;
}
/** Holds: see docs/holds.md. Your backend confirms them. */
export declare class Holds {
    constructor(sb: Switchboard);
    /**
     * Holds all of the places, or none. A `conflict` has `data.taken`, the seats that are not free.
     */
    take(resource: string, request: HoldRequest): Promise<Hold>;
    renew(resource: string, id: string): Promise<Hold>;
    /** Ends a hold or a sale of the user. */
    release(resource: string, id: string): Promise<Hold>;
    get(resource: string, id: string): Promise<Hold>;
    /** The holds and sales of the user, the newest first, with those that ended lately. */
    mine(resource: string): Promise<Hold[]>;
    /** Up to 100 resources; null for one that does not exist. */
    resources(resources: string[]): Promise<(Resource | null)[]>;
    /** Follows the seats of a resource. */
    seats(resource: string): SeatMap;
}
/** The seats of a resource that are not free, kept up to date. */
export declare class SeatMap extends View {
    get resource(): Resource | undefined;
    /** The state of a seat, and the end of its hold in ms since 1970. */
    get(seat: string): {
        state: "free" | "held" | "sold";
        until?: number | undefined;
    };
    /** The names of the seats that are not free. */
    get taken(): string[];
}
