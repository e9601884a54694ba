/** The kit: rooms, holds, boards, accounts and scenes. Each one is a module of its own. */
export { Accounts, Session } from "./accounts.js";
export type { Account, AccountsOptions, Credentials, LoginAnswer } from "./accounts.js";
export { Boards, BoardTop } from "./boards.js";
export type { BoardCard, BoardEntry, BoardResult, BoardPage, BoardView, SeasonOption, Standing } from "./boards.js";
export { Holds, SeatMap } from "./holds.js";
export type { Hold, HoldRequest, Resource } from "./holds.js";
export { Lobby, Room, Rooms } from "./rooms.js";
export type { MyRoom, NewRoom, Player, RoomCard, RoomDocument, RoomInfo, RoomPatch, RoomQuery } from "./rooms.js";
export { Scene, Scenes } from "./scenes.js";
export type { Avatar, Placed, SceneInfo } from "./scenes.js";
export { View } from "./view.js";
export type { ApiOptions } from "../api.js";
