import { type Condition } from "../api.cjs";
import type { Account } from "../kit/accounts.cjs";
import type { BoardCard, BoardPage, BoardResult, BoardView, SeasonOption, Standing, SubmissionKey } from "../kit/boards.cjs";
import type { Hold, HoldRequest, Resource } from "../kit/holds.cjs";
import type { MyRoom, NewRoom, Player, RoomCard, RoomDocument, RoomInfo, RoomPatch, RoomQuery } from "../kit/rooms.cjs";
import type { Avatar, Placed, SceneInfo } from "../kit/scenes.cjs";
import type { Json, JsonInput } from "../wire.cjs";
import type { Backend } from "./backend.cjs";
type Page = {
    limit?: number;
    cursor?: string;
};
/** How long something lasts. */
interface Ttl {
    ttl_ms?: number;
    /** @deprecated The former name of `ttl_ms`, in seconds. */
    ttl?: number;
}
/** A number is the former form, in seconds. */
type Duration = Ttl | number;
export interface ResourceSettings {
    capacity?: number;
    seats?: string[];
    hold_ms?: number;
    max_life_ms?: number;
    per_user?: number;
    ends?: number;
    data?: JsonInput;
    import?: {
        id: string;
        user?: string;
        seats?: string[];
        count?: number;
        until?: number;
    }[];
    durable?: boolean;
}
export type HeldResource = Resource;
export type AvatarRecord = Avatar;
/** A room, with the users that are in it. */
export interface RoomRecord extends RoomInfo {
    owner_user?: string;
    members: (Player & {
        user: string;
    })[];
}
/** A place in a room: that of a member, or a reserved one. */
export interface RoomPlace {
    room: string;
    channel: string;
    /** The number of the player. */
    n: number;
    /** The user was in the room before. */
    already?: boolean;
    /** The place is only reserved. */
    reserved?: boolean;
}
/** An event in the history of an account, such as a login. */
export interface AccountEvent {
    n: number;
    /** In ms since 1970. */
    at: number;
    type: string;
    address?: string;
    /** The former name. */
    name?: string;
}
/**
 * The kit's calls for backends. See docs/rooms.md, holds.md, boards.md, accounts.md and scenes.md.
 */
export declare class Kit {
    constructor(backend: Backend);
    createRoom(room: NewRoom & {
        owner?: string;
    }): Promise<RoomRecord>;
    room(room: string): Promise<RoomRecord>;
    /** Up to 100 rooms, without those that do not exist. */
    queryRooms(rooms: string[]): Promise<{
        rooms: RoomRecord[];
    }>;
    rooms(query?: Omit<RoomQuery, "desc" | "visibility"> & {
        desc?: 1;
        visibility?: string;
        owner?: string;
    }): Promise<{
        rooms: RoomCard[];
        cursor?: string;
        next?: string;
    }>;
    /** The number of rooms: see docs/rooms.md for the combinations that are counted. */
    countRooms(query?: {
        mode?: string;
        status?: RoomDocument["status"];
        region?: string;
        visibility?: RoomDocument["visibility"];
        owner?: string;
    }): Promise<{
        count: number;
    }>;
    /** A page of the rooms that a user is in. */
    roomsOf(user: string, page?: Page): Promise<{
        rooms: MyRoom[];
        cursor?: string;
        next?: string;
    }>;
    patchRoom(room: string, patch: RoomPatch): Promise<RoomRecord>;
    deleteRoom(room: string, condition?: Condition): Promise<void>;
    /** Reserves places for all of the users, or for none. */
    reserve(room: string, users: string[], time?: Duration): Promise<{
        room: string;
        numbers: Record<string, number>;
    }>;
    /**
     * Makes a user a member, on a client that is connected; without a client, it reserves the place.
     */
    joinRoom(room: string, join: {
        user: string;
        client?: string;
        nickname?: string;
    } & Ttl): Promise<RoomPlace>;
    /**
     * Makes a user a member of an open public room of the mode, or of a new one, on a client that is
     * connected; without a client, it reserves the place.
     */
    quickJoin(join: Pick<NewRoom, "mode" | "region" | "name" | "app_version" | "data"> & {
        user: string;
        client?: string;
        nickname?: string;
    } & Ttl): Promise<RoomPlace>;
    leaveRoom(room: string, user: string): Promise<void>;
    /** Removes player `n`. It may join again after `time`, a minute if it is absent. */
    kick(room: string, n: number, time?: Duration): Promise<void>;
    /** Operates a room: "lock", "start" or "finish". */
    operateRoom(room: string, operation: "lock" | "start" | "finish", body?: {
        locked?: boolean;
    }): Promise<Json>;
    putResource(resource: string, settings: ResourceSettings, condition?: Condition): Promise<Resource>;
    resource(resource: string): Promise<Resource>;
    resources(page?: Page): Promise<{
        resources: Resource[];
        cursor?: string;
    }>;
    /** Up to 100 resources; null for one that does not exist. */
    queryResources(resources: string[]): Promise<{
        resources: (Resource | null)[];
    }>;
    deleteResource(resource: string, condition?: Condition): Promise<void>;
    hold(resource: string, hold: HoldRequest & {
        user?: string;
    }): Promise<Hold>;
    sell(resource: string, sale: Omit<HoldRequest, "hold_ms"> & {
        user?: string;
    }): Promise<Hold>;
    held(resource: string, id: string): Promise<Hold>;
    /** "confirm" turns a hold into a sale. A second call changes nothing. */
    operateHold(resource: string, id: string, operation: "renew" | "confirm" | "release", options?: {
        durable?: boolean;
    }): Promise<Hold>;
    holdsOf(resource: string, user: string): Promise<{
        holds: Hold[];
    }>;
    submit(board: string, score: {
        player: string;
        score: number;
        mode?: "best" | "set" | "add";
        durable?: boolean;
    } & SubmissionKey & SeasonOption): Promise<BoardResult>;
    removePlayer(board: string, player: string, season?: SeasonOption): Promise<BoardResult>;
    /** A page of the boards that have a player, in the order of their names. */
    boards(page?: Page): Promise<{
        boards: BoardCard[];
        cursor?: string;
    }>;
    board(board: string, query?: {
        offset?: number;
        cursor?: string;
        limit?: number;
    } & SeasonOption): Promise<BoardPage>;
    around(board: string, player: string, query?: {
        limit?: number;
    } & SeasonOption): Promise<BoardView>;
    rank(board: string, player: string, season?: SeasonOption): Promise<Standing>;
    accounts(query?: Page & {
        state?: Account["state"] | "all";
    }): Promise<{
        accounts: Account[];
        cursor?: string;
        total: number;
    }>;
    account(account: string): Promise<Account>;
    accountByName(name: string): Promise<Account>;
    /** The last 100 events of an account, the newest first. */
    accountHistory(account: string): Promise<{
        account: string;
        events: AccountEvent[];
    }>;
    /** Changes the name; conflict if another account has it, or if the version is another one. */
    renameAccount(account: string, name: string, condition?: Condition): Promise<Account>;
    /** Replaces the password, and ends all logins and connections. */
    setAccountPassword(account: string, password: string): Promise<Account>;
    operateAccount(account: string, operation: "lock" | "unlock" | "delete" | "restore"): Promise<Account>;
    session<Data = Json>(user: string): Promise<{
        user: string;
        version: number;
        until: number;
        data: Data;
    }>;
    /** Puts a document that ends after `time`, one hour if it is absent. */
    putSession<Data = Json>(user: string, data: Data, time?: Duration, condition?: Condition): Promise<{
        user: string;
        version: number;
        until: number;
        data: Data;
    }>;
    deleteSession(user: string, condition?: Condition): Promise<void>;
    /** A repeated call with the same `key` returns the same avatar. */
    createAvatar(avatar: {
        user: string;
        name: string;
        id?: string;
        key?: string;
        figure?: string;
        data?: JsonInput;
    }): Promise<Avatar>;
    avatars(query: Page & {
        user: string;
        status?: Avatar["status"];
    }): Promise<{
        avatars: Avatar[];
        cursor?: string;
    }>;
    avatar(avatar: string): Promise<Avatar>;
    patchAvatar(avatar: string, patch: {
        version?: number;
        name?: string;
        figure?: string;
        data?: JsonInput;
        status?: Avatar["status"];
    }): Promise<Avatar>;
    /** Marks an avatar as deleted, and takes it out of its scene. */
    deleteAvatar(avatar: string, condition?: Condition): Promise<Avatar>;
    /** Moves an avatar to a scene. With `from`, only from there; "" is no scene. */
    placeAvatar(avatar: string, scene: string, from?: string): Promise<Avatar>;
    takeAvatar(avatar: string): Promise<Avatar>;
    /** A repeated call with the same `key` returns the same scene. */
    createScene(scene: {
        world: string;
        name: string;
        id?: string;
        key?: string;
        status?: string;
        time?: string;
        data?: JsonInput;
    }): Promise<SceneInfo>;
    /** A page of the scenes of a world, or of all worlds, without those that are deleted. */
    scenes(query?: Page & {
        world?: string;
        name?: string;
        status?: string;
    }): Promise<{
        scenes: SceneInfo[];
        cursor?: string;
    }>;
    /** The scene of a world with a name. */
    sceneByName(world: string, name: string): Promise<SceneInfo & {
        online: number;
        avatars: Placed[];
    }>;
    scene(scene: string): Promise<SceneInfo & {
        online: number;
        avatars: Placed[];
    }>;
    patchScene(scene: string, patch: {
        version?: number;
        name?: string;
        status?: string;
        time?: string;
        data?: JsonInput;
    }): Promise<SceneInfo>;
    /** Marks a scene as deleted. It loses its avatars and its name. */
    deleteScene(scene: string, condition?: Condition): Promise<SceneInfo>;
}
export {};
