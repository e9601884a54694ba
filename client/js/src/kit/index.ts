/** The kit: rooms, holds, boards, accounts and scenes. Each one is a module of its own. */
export { Accounts, Session } from "./accounts.js";
export type { AccountsOptions, Credentials } from "./accounts.js";
export { Boards, BoardTop } from "./boards.js";
export { Holds, SeatMap } from "./holds.js";
export { Lobby, Room, Rooms } from "./rooms.js";
export { Scene, Scenes } from "./scenes.js";
export type { SeasonOption } from "./boards.js";
export { View } from "./view.js";
export type {
  Account,
  Avatar,
  BoardCard,
  BoardEntry,
  BoardPage,
  BoardResult,
  BoardView,
  Hold,
  HoldRequest,
  LoginAnswer,
  MyRoom,
  NewRoom,
  Placed,
  Player,
  Resource,
  RoomCard,
  RoomDocument,
  RoomInfo,
  RoomPatch,
  RoomQuery,
  SceneInfo,
  SceneView,
  Standing,
} from "./types.gen.js";
export type { ApiOptions } from "../api.js";
