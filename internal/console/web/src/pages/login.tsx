import { useEffect, useRef, useState } from "preact/hooks";
import { Mark } from "../parts/icons";
import { Field } from "../parts/ui";

/** Login asks for an API key. onKey ends when the key is accepted or refused. */
export function Login({ refused, onKey }: { refused: boolean; onKey: (key: string) => Promise<void> }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Log in · Switchboard";
    input.current?.focus();
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!key.trim()) return;
    setBusy(true);
    await onKey(key.trim());
    setBusy(false);
    setKey("");
    input.current?.focus();
  };
  return (
    <main class="alone">
      <form class="card login" onSubmit={submit}>
        <Mark />
        <h1>Switchboard console</h1>
        <p class="about">This broker has API keys. The console shows and offers what your key may do.</p>
        <Field
          label="API key"
          hint={
            <>
              It stays in this tab and is forgotten when you close it. Make one with{" "}
              <code>broker key --scopes read</code>.
            </>
          }
        >
          {(id) => (
            <input
              id={id}
              ref={input}
              type="password"
              autocomplete="off"
              spellcheck={false}
              placeholder="swb_…"
              value={key}
              aria-invalid={refused && !key}
              onInput={(e) => setKey(e.currentTarget.value)}
            />
          )}
        </Field>
        {refused && !busy && !key && (
          <p class="problem" role="alert">
            <strong>The broker does not know this key.</strong> Check that it is complete, and that its entry is in{" "}
            <code>auth.keys</code>.
          </p>
        )}
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? "Checking…" : "Log in"}
        </button>
      </form>
    </main>
  );
}
