import type { Json, JsonInput, Switchboard } from "../index.js";
import type { Avatar, Placed, SceneInfo } from "./types.gen.js";
import { View } from "./view.js";

/** Avatars and scenes: see docs/scenes.md. The client needs a user. */
export class Scenes {
  constructor(private readonly sb: Switchboard) {}

  /** A repeated call with the same `key` returns the same avatar. */
  createAvatar(avatar: { key?: string; name: string; figure?: string; data?: JsonInput }): Promise<Avatar> {
    return this.sb.call("avatar.create", avatar);
  }

  /** A page of the avatars of the user, the oldest first. */
  avatars(page: { cursor?: string; limit?: number } = {}): Promise<{ avatars: Avatar[]; cursor?: string }> {
    return this.sb.call("avatar.list", page);
  }

  /** Changes an avatar. With a `version`, only if it has it. */
  patchAvatar(
    avatar: string,
    patch: { version?: number; name?: string; figure?: string; data?: JsonInput },
  ): Promise<Avatar> {
    return this.sb.call("avatar.patch", { avatar, ...patch });
  }

  deleteAvatar(avatar: string, version?: number): Promise<Avatar> {
    return this.sb.call("avatar.delete", { avatar, version });
  }

  /** A page of the scenes of a world. */
  list(query: {
    world: string;
    status?: string;
    cursor?: string;
    limit?: number;
  }): Promise<{ scenes: SceneInfo[]; cursor?: string }> {
    return this.sb.call("scene.list", query);
  }

  /** A scene with its avatars, from all pages. */
  async get(scene: string): Promise<SceneInfo & { online: number; avatars: Placed[] }> {
    let online = 0;
    const avatars: Placed[] = [];
    for (let cursor: string | undefined; ;) {
      const { cursor: next, ...page } = await this.sb.call<
        SceneInfo & { online: number; avatars: Placed[]; cursor?: string }
      >("scene.get", { scene, cursor });
      online += page.online;
      avatars.push(...page.avatars);
      if (!next) return { ...page, online, avatars };
      cursor = next;
    }
  }

  /**
   * Follows a scene, and enters it with an avatar from no scene. Refusals: conflict (it is in
   * another scene: transfer it), locked, full, not_found. After an error the scene is not followed.
   * After a reconnect within the grace the avatar is still there.
   */
  enter(avatar: string, scene: string): Promise<Scene> {
    return this.place("scene.enter", { avatar, scene });
  }

  /** Like `enter`, from any scene, or from one. */
  transfer(avatar: string, scene: string, from?: string): Promise<Scene> {
    return this.place("scene.transfer", { avatar, scene, from });
  }

  /** Follows a scene without entering it. */
  follow(scene: string): Scene {
    return new Scene(this.sb, scene);
  }

  private async place(
    method: string,
    data: { avatar: string; scene: string; from?: string | undefined },
  ): Promise<Scene> {
    const scene = new Scene(this.sb, data.scene, data.avatar);
    try {
      await scene.ready(); // the place belongs to the subscription
      await this.sb.call(method, data);
    } catch (error) {
      scene.close().catch(() => {}); // without a connection it waits for one, and the caller does not
      throw error;
    }
    return scene;
  }
}

/** A scene, kept up to date. */
export class Scene extends View {
  constructor(
    sb: Switchboard,
    readonly id: string,
    /** The avatar of this client. */ readonly avatar?: string,
  ) {
    super(sb, `scene:${id}`);
  }

  /** The scene, undefined if it does not exist. */
  get info(): Omit<SceneInfo, "id" | "count" | "version" | "created"> | undefined {
    return this.channel.state.get("$scene") as SceneInfo | undefined;
  }

  /** The avatars that are here, online or offline. */
  get avatars(): Placed[] {
    return this.entriesOf<{ name: string; figure?: string; offline?: boolean }>("pc/")
      .filter(([, { until, away }]) => away || until === undefined) // else a transfer is not finished
      .map(([avatar, { value, away }]) => ({
        avatar,
        name: value.name,
        ...(value.figure && { figure: value.figure }),
        online: !away && !value.offline,
        fields: Object.fromEntries(this.entriesOf<Json>(`a/${avatar}/`).map(([name, entry]) => [name, entry.value])),
      }));
  }

  /** Sets a field of the avatar of this client, such as its position. It ends with the place. */
  async set(name: string, value: JsonInput): Promise<void> {
    await this.channel.set(`a/${this.avatar}/${name}`, value);
  }
}
