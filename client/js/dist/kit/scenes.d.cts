import type { Json, JsonInput, Switchboard } from "../index.cjs";
import { View } from "./view.cjs";
/** An avatar of an account. Times are in ms since 1970. */
export interface Avatar {
    id: string;
    user: string;
    name: string;
    figure?: string;
    status: "open" | "deleted";
    /** The scene that it is in. */
    scene?: string;
    data?: Json;
    created: number;
    version: number;
}
export interface SceneInfo {
    id: string;
    world: string;
    name: string;
    status: "open" | "closed";
    time?: string;
    data?: Json;
    created: number;
    version: number;
    /** The number of avatars, online or offline. */
    count: number;
}
/** An avatar in a scene. */
export interface Placed {
    avatar: string;
    name: string;
    figure?: string;
    online: boolean;
    /** What its player has written. */
    fields: Record<string, Json>;
}
/** Avatars and scenes: see docs/scenes.md. The client needs a user. */
export declare class Scenes {
    constructor(sb: Switchboard);
    /** A repeated call with the same `key` returns the same avatar. */
    createAvatar(avatar: {
        key?: string;
        name: string;
        figure?: string;
        data?: JsonInput;
    }): Promise<Avatar>;
    /** A page of the avatars of the user, the oldest first. */
    avatars(page?: {
        cursor?: string;
        limit?: number;
    }): Promise<{
        avatars: Avatar[];
        cursor?: string;
    }>;
    /** Changes an avatar. With a `version`, only if it has it. */
    patchAvatar(avatar: string, patch: {
        version?: number;
        name?: string;
        figure?: string;
        data?: JsonInput;
    }): Promise<Avatar>;
    deleteAvatar(avatar: string, version?: number): Promise<Avatar>;
    /** A page of the scenes of a world. */
    list(query: {
        world: string;
        status?: string;
        cursor?: string;
        limit?: number;
    }): Promise<{
        scenes: SceneInfo[];
        cursor?: string;
    }>;
    /** A scene with its avatars, from all pages. */
    get(scene: string): Promise<SceneInfo & {
        online: number;
        avatars: Placed[];
    }>;
    /**
     * Follows a scene, and enters it with an avatar from no scene. Refusals: conflict (it is in
     * another scene: transfer it), locked, full, not_found. After an error the scene is not followed.
     * After a reconnect within the grace the avatar is still there.
     */
    enter(avatar: string, scene: string): Promise<Scene>;
    /** Like `enter`, from any scene, or from one. */
    transfer(avatar: string, scene: string, from?: string): Promise<Scene>;
    /** Follows a scene without entering it. */
    follow(scene: string): Scene;
}
/** A scene, kept up to date. */
export declare class Scene extends View {
    readonly id: string;
    /** The avatar of this client. */ readonly avatar?: string | undefined;
    constructor(sb: Switchboard, id: string, 
    /** The avatar of this client. */ avatar?: string | undefined);
    /** The scene, undefined if it does not exist. */
    get info(): Omit<SceneInfo, "id" | "count" | "version" | "created"> | undefined;
    /** The avatars that are here, online or offline. */
    get avatars(): Placed[];
    /** Sets a field of the avatar of this client, such as its position. It ends with the place. */
    set(name: string, value: JsonInput): Promise<void>;
}
