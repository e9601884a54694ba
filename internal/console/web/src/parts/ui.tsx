// The pieces that all pages are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Refusal } from "../api";
import { duration, moment, time } from "../format";
import { useNow } from "../hooks";
import { Icon } from "./icons";

type Children = { children?: ComponentChildren };

/** Page has the heading of a page. It receives the focus when the page opens. */
export function Page({
  title,
  trail,
  about,
  actions,
  children,
}: Children & {
  title: string;
  /** The page above this one. */
  trail?: { label: string; href: string };
  about?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Switchboard`;
    heading.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [title]);
  return (
    <>
      <header class="page-head">
        <div>
          {trail && (
            <a class="trail" href={trail.href}>
              {trail.label}
            </a>
          )}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about && <p class="about">{about}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Card({
  title,
  note,
  actions,
  flush,
  children,
}: Children & {
  title?: ComponentChildren;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  /** True lets a table reach the edges. */
  flush?: boolean;
}) {
  const id = useId();
  return (
    <section class={flush ? "card flush" : "card"} aria-labelledby={title ? id : undefined}>
      {title && (
        <header class="card-head">
          <h2 id={id}>{title}</h2>
          {note && <span class="note">{note}</span>}
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** Empty says what is missing, and what to do next. */
export function Empty({ title, children }: Children & { title: string }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-text">{children}</div>}
    </div>
  );
}

/** Problem shows why a call failed. */
export function Problem({ error, retry }: { error: Refusal | undefined; retry?: () => void }) {
  if (!error) return null;
  const hint =
    error.status === 403 && error.message.includes("scope")
      ? "Log in with a key that has the scope."
      : error.code === "unreachable"
        ? "Check that the broker runs and that this page is still its own."
        : error.code === "unavailable"
          ? "The store does not answer. Nothing is lost; try again."
          : "";
  return (
    <div class="problem" role="alert">
      <p>
        <strong>{error.message}</strong> {hint}
      </p>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Loading holds the place of data that is on its way. */
export const Loading = () => (
  <div class="loading" role="status">
    <span class="visually-hidden">Loading</span>
  </div>
);

export type Tone = "good" | "warn" | "bad" | "plain" | "accent";

export const Badge = ({ tone = "plain", children }: Children & { tone?: Tone }) => (
  <span class={`badge ${tone}`}>{children}</span>
);

export type Fact = [name: string, value: ComponentChildren];

/** Facts is a list of names and values. */
export function Facts({ items }: { items: Fact[] }) {
  return (
    <dl class="facts">
      {items.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * Table has a caption that only screen readers need. Columns with a leading + hold numbers; a
 * trailing ? hides them on phones.
 */
export function Table({ caption, columns, children }: Children & { caption: string; columns: string[] }) {
  return (
    <div class="table-frame">
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" class={columnClass(column)}>
                {column.replace(/^\+|\?$/g, "") || <span class="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

const columnClass = (column: string) =>
  [column.startsWith("+") && "num", column.endsWith("?") && "wide"].filter(Boolean).join(" ");

/** Ago shows how long ago a moment was. */
export function Ago({ at, now }: { at: number; now?: number }) {
  const clock = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={moment(at)}>
      {duration((now ?? clock) - at)} ago
    </time>
  );
}

/** When shows how long ago a moment was, or in how long it will be. */
export function When({ at }: { at: number }) {
  const now = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={moment(at)}>
      {at > now ? `in ${duration(at - now)}` : `${duration(now - at)} ago`}
    </time>
  );
}

export const At = ({ ms }: { ms: number }) => (
  <time dateTime={new Date(ms).toISOString()} title={moment(ms)}>
    {time(ms)}
  </time>
);

/** Copy copies a text to the clipboard. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [state, setState] = useState<"" | "Copied" | "Select and copy by hand">("");
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(""), 2500);
    return () => clearTimeout(timer);
  }, [state]);
  // Without https or localhost a page has no clipboard.
  const copy = () =>
    navigator.clipboard?.writeText(text).then(
      () => setState("Copied"),
      () => setState("Select and copy by hand"),
    ) ?? setState("Select and copy by hand");
  return (
    <button type="button" class="button quiet" onClick={copy}>
      <Icon name={state === "Copied" ? "done" : "copy"} />
      <span aria-live="polite">{state || label}</span>
    </button>
  );
}

/** Code shows lines to copy. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div class="code">
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <Copy text={text} />
    </div>
  );
}

/** Field is a labelled input; the child gets the id. */
export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: ComponentChildren;
  children: (id: string) => ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <p class="hint">{hint}</p>}
    </div>
  );
}

/** Confirm is a button that asks before it acts. */
export function Confirm({
  label,
  question,
  harmless,
  busy,
  onConfirm,
}: {
  label: string;
  question: string;
  /** True if the action takes nothing away. */
  harmless?: boolean;
  busy?: boolean;
  onConfirm: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = () => dialog.current?.close();
  return (
    <>
      <button
        type="button"
        class={harmless ? "button" : "button danger"}
        disabled={busy}
        onClick={() => dialog.current?.showModal()}
      >
        {label}
      </button>
      <dialog ref={dialog} aria-label={label} onClick={(e) => e.target === dialog.current && close()}>
        <div class="dialog">
          <p>{question}</p>
          <div class="actions">
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
            <button
              type="button"
              class={harmless ? "button primary" : "button danger solid"}
              onClick={() => {
                close();
                onConfirm();
              }}
            >
              {label}
            </button>
          </div>
        </div>
      </dialog>
    </>
  );
}
