import { Emitter } from "./emitter.cjs";
import type { SwitchboardError } from "./errors.cjs";
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
export declare class User extends Emitter<UserEvents> {
    readonly name: string;
    /** Undefined until it is known. After a connection is lost it keeps the last value. */
    online: boolean | undefined;
    /** Ends the subscription. */
    unsubscribe(): Promise<void>;
}
