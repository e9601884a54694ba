import { Channel } from "./channel.js";
import { Emitter } from "./emitter.js";
import type { SwitchboardError } from "./errors.js";
import type { Switchboard } from "./switchboard.js";

export interface UserEvents {
  online: [];
  offline: [];
  /** The broker does not permit it. */
  unsubscribed: [error: SwitchboardError];
}

/**
 * Whether a user is online: with a connection on any device, or with the last one lost for less
 * than 5 s.
 */
export class User extends Emitter<UserEvents> {
  /** Undefined until it is known. After a connection is lost it keeps the last value. */
  online: boolean | undefined;
  private readonly _channel: Channel;

  /** @internal */
  constructor(
    readonly name: string,
    sb: Switchboard,
  ) {
    super((error, event) => sb._report(error, event, name));
    this._channel = sb.channel(`$user:${name}`);
    let joined = false;
    this._channel._onPresence = (m) => {
      joined = m.type === "join";
      this._set(joined);
    };
    this._channel.on("subscribed", () => {
      joined = false;
      // A `join` follows at once if the user is online. Whatever answers later comes after it.
      sb._call({ type: "ping" }).then(
        () => this._set(joined),
        () => {},
      );
    });
    this._channel.on("unsubscribed", (error) => {
      this.online = undefined;
      sb._warn(error.code, `whether ${name} is online is not known: ${error.message}`, this._has("unsubscribed"));
      this._emit("unsubscribed", error);
    });
  }

  /** @internal Subscribes again, after `unsubscribe` or a refusal. */
  _subscribe(): void {
    this._channel._configure({});
  }

  /** Ends the subscription. */
  unsubscribe(): Promise<void> {
    this.online = undefined;
    return this._channel.unsubscribe();
  }

  private _set(online: boolean): void {
    if (this.online === online) return;
    this.online = online;
    this._emit(online ? "online" : "offline");
  }
}
