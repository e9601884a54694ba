/** The client of Switchboard for browsers, Node, Deno, Bun and React Native. */
export { Switchboard } from "./switchboard.js";
export type { Connected, Disconnected, Logger, Options, SwitchboardEvents } from "./options.js";
export { SwitchboardError, SignedOutError } from "./errors.js";
export type { Entry, LocalCode } from "./errors.js";
export type { Channel, ChannelEvents, ChannelOptions, History, Subscribed } from "./channel.js";
export type { Change, ChangeOptions, Published, PublishOptions } from "./change.js";
export type { Feed, FeedEvents, Gap, MessageInfo } from "./feed.js";
export type { AppState } from "./foreground.js";
export type { Inbox } from "./inbox.js";
export type { MemberEvents, Members } from "./members.js";
export type { State, StateChange, StateEvents } from "./state.js";
export type { Storage } from "./storage.js";
export type { TokenSource } from "./token.js";
export type { Draft, TransactOptions } from "./transact.js";
export type { User, UserEvents } from "./user.js";
export type { Emitter } from "./emitter.js";
export type { Socket, SocketClass } from "./connection.js";
export type { Changes, CloseCode, ErrorCode, Json, JsonInput, Member, Sent, Stored } from "./wire.js";
