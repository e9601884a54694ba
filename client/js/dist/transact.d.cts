import type { ChangeOptions } from "./change.cjs";
import type { Channel } from "./channel.cjs";
import type { Json } from "./wire.cjs";
export type TransactOptions = Omit<ChangeOptions, "if" | "key">;
/** A transaction reads and writes fields as properties. `delete` removes a field. */
export type Draft<Fields> = {
    -readonly [K in keyof Fields]?: Fields[K];
};
/**
 * transact calls `change` with a draft of the fields, and publishes what it has written under the
 * condition that no field that it has read has changed. After a conflict it calls `change` again
 * with the current values.
 */
export declare function transact<Fields extends object, Result>(channel: Channel<Json, Fields>, change: (fields: Draft<Fields>) => Result | Promise<Result>, options: TransactOptions): Promise<Result>;
