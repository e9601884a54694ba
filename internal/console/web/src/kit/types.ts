// Answers of the kit's calls (docs/rooms.md, holds.md, boards.md, accounts.md, scenes.md).

export type { BoardCard, BoardView } from "../../../../../client/js/dist/kit/boards.js";
export type { AccountEvent } from "../../../../../client/js/dist/server/kit.js";

export interface RoomDocument {
  name?: string;
  mode: string;
  visibility: string;
  status: string;
  region?: string;
  locked?: boolean;
  capacity: number;
  created: number;
  started?: number;
  finished?: number;
  app_version?: string;
  data?: unknown;
}

export interface RoomCard {
  id: string;
  version: number;
  room: RoomDocument;
  members: number;
  reserved: number;
  owner?: number;
  last_activity: number;
}

export interface Room {
  id: string;
  channel: string;
  version: number;
  room: RoomDocument;
  owner?: number;
  owner_user?: string;
  code?: string;
  members: {
    n: number;
    nickname?: string;
    joined?: number;
    away?: boolean;
    reserved?: boolean;
    until?: number;
    user?: string;
  }[];
}

export interface Resource {
  resource: string;
  version: number;
  capacity: number;
  seats?: string[]; // names and ranges; absent: units without names
  data?: unknown;
  ends?: number;
  sold: number;
  held: number;
  free: number;
}

/** Hold is the value of a field $$hold/{id} of a resource's channel. */
export interface Hold {
  user?: string;
  seats: string[];
  units?: boolean;
  state: "held" | "sold" | "released" | "expired";
  created: number;
  sold?: number;
  ended?: number;
}

export interface Account {
  id: string;
  name?: string; // absent: a guest
  nickname?: string;
  state: "open" | "locked" | "deleted";
  created: number;
  login?: { at: number; address: string };
}

export interface SceneCard {
  id: string;
  world: string;
  name: string;
  status: string;
  time?: string;
  data?: unknown;
  created: number;
  version: number;
  count: number;
}

export interface Scene extends SceneCard {
  online: number;
  avatars: { avatar: string; name: string; figure?: string; online: boolean; fields?: Record<string, unknown> }[];
}
