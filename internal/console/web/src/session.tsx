// The session: what this broker is, and what the key may do.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Scope, Self, System } from "./types";

const Context = createContext<Self | undefined>(undefined);

export const SessionProvider = Context.Provider;

export interface Session {
  self: Self;
  /** may reports whether the key has a scope; admin includes all. */
  may: (scope: Scope) => boolean;
  /** has reports whether a system of the kit is switched on. */
  has: (system: System) => boolean;
}

export function useSession(): Session {
  const self = useContext(Context);
  if (!self) throw new Error("useSession outside of SessionProvider");
  const { scopes } = self.key;
  return {
    self,
    may: (scope) => scopes.includes(scope) || scopes.includes("admin"),
    has: (system) => self.kit.includes(system),
  };
}
