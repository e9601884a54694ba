import { useState } from "preact/hooks";
import { post } from "../api";
import { useAction } from "../hooks";
import { At, Badge, Card, Empty, type Fact, Facts, Field, Page, Problem, Table } from "../parts/ui";
import { link } from "../router";
import { useSession } from "../session";
import type { Check } from "../types";

type By = "token" | "user" | "nobody";

/** Access answers what a token or a user may do on a channel, and why. */
export function Access() {
  const { self } = useSession();
  const [by, setBy] = useState<By>(self.tokens ? "token" : "user");
  const [token, setToken] = useState("");
  const [user, setUser] = useState("");
  const [channel, setChannel] = useState("");
  const [fields, setFields] = useState("");
  const check = useAction<Check>();
  const ready = channel.trim() && (by === "token" ? token.trim() : by === "user" ? user.trim() : true);
  const submit = (event: Event) => {
    event.preventDefault();
    const names = fields.split(/[\s,]+/).filter(Boolean);
    const body: Record<string, unknown> = { channel: channel.trim() };
    if (by === "token") body.token = token.trim();
    if (by === "user") body.user = user.trim();
    if (names.length) body.fields = names;
    void check.run(() => post<Check>("/v1/check", body));
  };
  const choice = (value: By, label: string) => (
    <label class="choice">
      <input
        type="radio"
        name="by"
        value={value}
        checked={by === value}
        onChange={() => {
          setBy(value);
          check.clear();
        }}
      />{" "}
      {label}
    </label>
  );
  return (
    <Page
      title="Access check"
      about="What may this token do, and why? The broker answers with the code that decides for clients."
    >
      <div class="grid split even">
        <Card title="Question">
          <form class="stack" onSubmit={submit}>
            <fieldset class="choices">
              <legend class="visually-hidden">Who asks</legend>
              {self.tokens && choice("token", "A token")}
              {choice("user", "A user")}
              {choice("nobody", "A client without a user")}
            </fieldset>
            {by === "token" && (
              <Field label="Token" hint="It is sent to this broker only, and not stored.">
                {(id) => (
                  <textarea
                    id={id}
                    class="mono"
                    rows={5}
                    spellcheck={false}
                    autocomplete="off"
                    placeholder="eyJ…"
                    value={token}
                    onInput={(e) => setToken(e.currentTarget.value)}
                  />
                )}
              </Field>
            )}
            {by === "user" && (
              <Field label="User">
                {(id) => (
                  <input id={id} placeholder="alice" value={user} onInput={(e) => setUser(e.currentTarget.value)} />
                )}
              </Field>
            )}
            <Field label="Channel">
              {(id) => (
                <input id={id} placeholder="news" value={channel} onInput={(e) => setChannel(e.currentTarget.value)} />
              )}
            </Field>
            <Field label="Fields" hint="Optional: names of fields that the client would write.">
              {(id) => (
                <input
                  id={id}
                  placeholder="seat/A1 status"
                  value={fields}
                  onInput={(e) => setFields(e.currentTarget.value)}
                />
              )}
            </Field>
            <div class="form-end">
              <button type="submit" class="button primary" disabled={!ready || check.busy}>
                {check.busy ? "Checking…" : "Check"}
              </button>
            </div>
          </form>
        </Card>
        <Card title="Answer" flush>
          <div aria-live="polite">
            <Problem error={check.error} />
            {!check.result && !check.error && (
              <Empty title="Ask a question.">The answer names the rule that decides each right.</Empty>
            )}
            {check.result?.error && (
              <div class="problem">
                <p>
                  <strong>The token is refused.</strong> {check.result.error}
                </p>
              </div>
            )}
            {check.result && !check.result.error && <Answer check={check.result} />}
          </div>
        </Card>
      </div>
    </Page>
  );
}

const Verdict = ({ allowed }: { allowed: boolean }) =>
  allowed ? <Badge tone="good">yes</Badge> : <Badge tone="bad">no</Badge>;

function Answer({ check }: { check: Check }) {
  const items: Fact[] = [
    ["User", check.user ?? "none"],
    ["Channel", <a href={link("channels", check.channel)}>{check.channel}</a>],
    ["Namespace", check.rule ?? "none"],
  ];
  if (check.client) items.splice(1, 0, ["Only the client", check.client]);
  if (check.expires) items.push(["Token ends", <At ms={check.expires} />]);
  return (
    <>
      <div class="inset">
        <Facts items={items} />
        {check.limits && <p class="hint">Limits of the namespace: {check.limits}</p>}
      </div>
      <Table caption="Rights" columns={["Right", "Allowed", "Why"]}>
        {check.connect && (
          <tr>
            <th scope="row" class="word">
              connect
            </th>
            <td>
              <Verdict allowed={check.connect.allowed} />
            </td>
            <td>{check.connect.why}</td>
          </tr>
        )}
        {check.rights?.map((r) => (
          <tr key={r.right}>
            <th scope="row" class="word">
              {r.right}
            </th>
            <td>
              <Verdict allowed={r.allowed} />
            </td>
            <td>{r.why}</td>
          </tr>
        ))}
        {check.fields?.map((f) => (
          <tr key={f.field}>
            <th scope="row" class="mono">
              {f.field}
            </th>
            <td>
              <Verdict allowed={f.allowed} />
            </td>
            <td>
              {f.why}
              {f.limits && <span class="under">{f.limits}</span>}
            </td>
          </tr>
        ))}
      </Table>
    </>
  );
}
