import type { Json, JsonInput, Switchboard } from "../index.js";
import { View } from "./view.js";
/** Describes a room. Times are in ms since 1970. */
export interface RoomDocument {
    name?: string;
    mode: string;
    visibility: "public" | "private";
    status: "waiting" | "playing" | "finished";
    region?: string;
    locked?: boolean;
    capacity: number;
    created: number;
    started?: number;
    finished?: number;
    app_version?: string;
    data?: Json;
}
/** A player, or a reserved place. */
export interface Player {
    n: number;
    nickname?: string;
    joined?: number;
    reserved?: boolean;
    /** The player has no connection. */
    away?: boolean;
    /** When the place ends, in ms since 1970. */
    until?: number | undefined;
}
/** A room as the broker returns it. */
export interface RoomInfo {
    id: string;
    channel: string;
    version: number;
    room: RoomDocument;
    /** The number of the owner. */
    owner?: number;
    members: Player[];
    /** The number of this user, if it is a member. */
    n?: number;
    /** The code of a private room, for its owner. */
    code?: string;
}
/** A room in a list. */
export interface RoomCard {
    id: string;
    version: number;
    room: RoomDocument;
    /** The room has more than 1 KiB of data, which a card does not have. */
    data_omitted?: boolean;
    /** Without reservations. */
    members: number;
    reserved: number;
    owner?: number;
    last_activity?: number;
}
/** A room that the user is in. */
export interface MyRoom extends Omit<RoomCard, "reserved"> {
    channel: string;
    n: number;
    away?: boolean;
    /** The place is only reserved. */
    reserved?: boolean;
}
export interface NewRoom {
    id?: string;
    /** A repeated call with the same key returns the same room. */
    key?: string;
    mode: string;
    name?: string;
    visibility?: "public" | "private";
    region?: string;
    capacity?: number;
    app_version?: string;
    data?: JsonInput;
    /** The nickname of this user. */
    nickname?: string;
}
export interface RoomQuery {
    mode?: string;
    status?: RoomDocument["status"];
    region?: string;
    visibility?: "public";
    /** The least number of free places. */
    free?: number;
    order?: "created" | "started" | "ended" | "activity";
    desc?: boolean;
    from?: number;
    to?: number;
    cursor?: string;
    limit?: number;
}
export interface RoomPatch {
    /** The version that must not have changed. */
    version?: number;
    name?: string;
    region?: string;
    locked?: boolean;
    app_version?: string;
    data?: JsonInput;
    /** The number of the new owner. */
    owner?: number;
}
/** Rooms: see docs/rooms.md. The client needs a user. */
export declare class Rooms {
    constructor(sb: Switchboard);
    /** Makes a room whose owner and first member is this user, and follows it. */
    create(room: NewRoom): Promise<Room>;
    /**
     * Makes this user a member, and follows the room. Refusals: not_found, bad_code, locked, full.
     */
    join(room: string, options?: {
        nickname?: string;
        code?: string;
    }): Promise<Room>;
    /** Joins an open public room of the mode, or makes one, and follows it. */
    quick(options: Pick<NewRoom, "mode" | "region" | "nickname" | "name" | "app_version" | "data">): Promise<Room>;
    get(room: string): Promise<RoomInfo>;
    /** A page of public rooms. It may be short, or empty, and have a `cursor`. `next` is its former name. */
    list(query?: RoomQuery): Promise<{
        rooms: RoomCard[];
        cursor?: string;
        next?: string;
    }>;
    /** A page of the rooms that this user is in. */
    mine(page?: {
        cursor?: string;
        limit?: number;
    }): Promise<{
        rooms: MyRoom[];
        cursor?: string;
        next?: string;
    }>;
    /** Follows the newest rooms of a mode that can be joined. */
    lobby(mode: string, region?: string): Lobby;
}
/** A lobby: the public rooms that can be joined, kept up to date. */
export declare class Lobby extends View {
    /** The rooms, the newest first. */
    get rooms(): RoomCard[];
}
/** A room that this user is in, kept up to date. */
export declare class Room extends View {
    readonly id: string;
    /** The number of this user. */
    readonly n: number;
    /** The code of a private room that this client has created. */
    readonly code?: string | undefined;
    constructor(sb: Switchboard, id: string, channel: string, 
    /** The number of this user. */
    n: number, 
    /** The code of a private room that this client has created. */
    code?: string | undefined);
    /** Undefined after the room has ended. */
    get document(): RoomDocument | undefined;
    /** The members and the reserved places, by number. */
    get players(): Player[];
    /** A field of a player, of this one if `n` is absent. */
    get<Value = Json>(name: string, n?: number): Value | undefined;
    /** Sets a field of this player. It ends with the membership. */
    set(name: string, value: JsonInput): Promise<void>;
    /** Ends the membership on all devices of the user. */
    leave(): Promise<void>;
    /** Removes a player, or a reserved place. For the owner, like the following ones. */
    kick(n: number): Promise<void>;
    lock(locked?: boolean): Promise<void>;
    start(): Promise<void>;
    finish(): Promise<void>;
    patch(patch: RoomPatch): Promise<RoomInfo>;
}
