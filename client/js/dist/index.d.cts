/** The client of Switchboard for browsers, Node, Deno, Bun and React Native. */
export { Switchboard } from "./switchboard.cjs";
export type { Connected, Disconnected, Logger, Options, SwitchboardEvents } from "./options.cjs";
export { SwitchboardError, SignedOutError } from "./errors.cjs";
export type { Entry, LocalCode } from "./errors.cjs";
export type { Channel, ChannelEvents, ChannelOptions, History, Subscribed } from "./channel.cjs";
export type { Change, ChangeOptions, Published, PublishOptions } from "./change.cjs";
export type { Feed, FeedEvents, Gap, MessageInfo } from "./feed.cjs";
export type { AppState } from "./foreground.cjs";
export type { Inbox } from "./inbox.cjs";
export type { MemberEvents, Members } from "./members.cjs";
export type { State, StateChange, StateEvents } from "./state.cjs";
export type { Storage } from "./storage.cjs";
export type { TokenSource } from "./token.cjs";
export type { Draft, TransactOptions } from "./transact.cjs";
export type { User, UserEvents } from "./user.cjs";
export type { Emitter } from "./emitter.cjs";
export type { Socket, SocketClass } from "./connection.cjs";
export type { Changes, CloseCode, ErrorCode, Json, JsonInput, Member, Sent, Stored } from "./wire.cjs";
