// The frame of all pages: login, navigation, and the page of the address.
import { useCallback, useEffect, useState } from "preact/hooks";
import { Refusal, get, hasKey, setKey, whenKeyIsRefused } from "./api";
import { toRefusal } from "./hooks";
import { Login } from "./pages/login";
import { Navigation } from "./parts/navigation";
import { Problem } from "./parts/ui";
import { pageOf } from "./pages";
import { useRoute } from "./router";
import { SessionProvider, useSession } from "./session";
import { startSampling } from "./samples";
import type { Self } from "./types";

type Stage =
  | { name: "loading" }
  | { name: "login"; refused?: boolean }
  | { name: "failed"; error: Refusal }
  | { name: "open"; self: Self };

export function App() {
  const [stage, setStage] = useState<Stage>({ name: "loading" });
  const enter = useCallback(async () => {
    const withKey = hasKey();
    try {
      setStage({ name: "open", self: await get<Self>("/v1/self") });
    } catch (error) {
      const refusal = toRefusal(error);
      if (refusal.status === 401) setStage({ name: "login", refused: withKey });
      else setStage({ name: "failed", error: refusal });
    }
  }, []);
  const leave = useCallback((refused: boolean) => {
    setKey("");
    setStage({ name: "login", refused });
  }, []);
  useEffect(() => {
    whenKeyIsRefused(() => leave(true));
    void enter();
  }, []);
  switch (stage.name) {
    case "loading":
      return null;
    case "login":
      return (
        <Login
          refused={stage.refused ?? false}
          onKey={(key) => {
            setKey(key);
            return enter();
          }}
        />
      );
    case "failed":
      return (
        <main class="alone">
          <Problem error={stage.error} retry={enter} />
        </main>
      );
    case "open":
      return (
        <SessionProvider value={stage.self}>
          <Frame leave={() => leave(false)} />
        </SessionProvider>
      );
  }
}

function Frame({ leave }: { leave: () => void }) {
  const route = useRoute();
  const session = useSession();
  const reads = session.may("read");
  useEffect(() => (reads ? startSampling() : undefined), [reads]);
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the page
      </a>
      <Navigation current={route[0] ?? ""} leave={leave} />
      <main id="main" tabIndex={-1}>
        {pageOf(route, session)}
      </main>
    </div>
  );
}
