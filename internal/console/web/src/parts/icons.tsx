// Icons of the navigation, on a grid of 20.
const paths: Record<string, string> = {
  overview: "M2.5 10.5h3.2l2.3-6 4 11 2.3-5h3.2",
  channels: "M7.5 3 5.8 17M14.2 3l-1.7 14M3.5 7.2h13.3M3.2 12.8h13.3",
  users: "M10 10a3.2 3.2 0 1 0 0-6.4A3.2 3.2 0 0 0 10 10Zm-6.2 6.6c.7-2.9 3.1-4.4 6.2-4.4s5.5 1.5 6.2 4.4",
  webhooks: "M3 10h11M10 5.5l4.5 4.5-4.5 4.5M17 4v12",
  access: "M12.6 11.4a4 4 0 1 0-3.9-3L3 14.1V17h2.9v-2.1H8v-2.1h1.5l.6-.6a4 4 0 0 0 2.5-.8ZM13.5 6.5h.01",
  start: "m3 10 14-6.5-4.6 13.4-2.7-5.4L3 10Z",
  rooms: "M3.5 3.5h5.4v5.4H3.5zM11.1 3.5h5.4v5.4h-5.4zM3.5 11.1h5.4v5.4H3.5zM11.1 11.1h5.4v5.4h-5.4z",
  holds: "M6 3.5v6.2h7.5M6 9.7 4.5 17M13.5 9.7 15 17M4.9 14h9.6M6 6.5h5a2.2 2.2 0 0 1 2.2 2.2",
  boards: "M4.5 16.5v-5M10 16.5V4M15.5 16.5V8",
  accounts:
    "M2.8 4.5h14.4v11H2.8zM7 10.4a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4Zm-2 2.6c.3-1 1-1.5 2-1.5s1.7.5 2 1.500M12 8.200h3M12 11.400h3",
  scenes:
    "M10 17s-5.5-4.6-5.5-8.6a5.5 5.5 0 1 1 11 0C15.5 12.4 10 17 10 17Zm0-6.8a1.9 1.9 0 1 0 0-3.8 1.9 1.9 0 0 0 0 3.800Z",
  menu: "M3 6h14M3 10h14M3 14h14",
  theme: "M10 3.200a6.8 6.8 0 1 0 6.8 8.300A5.4 5.4 0 0 1 10 3.200Z",
  leave: "M8 3.500H4v13h4M8.5 10H17M13.5 6.5 17 10l-3.5 3.5",
  copy: "M7 7h9.500v9.500H7zM4 13H3.500V3.500H13V4",
  done: "m4 10.5 4 4 8-9",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={paths[name] ?? ""} />
    </svg>
  );
}

/** Mark is the sign of Switchboard: a cord between two of six jacks. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M9 10c0 12 14 0 14 12" />
      <g>
        <circle cx="9" cy="9" r="2.6" />
        <circle cx="23" cy="23" r="2.6" />
        <circle class="free" cx="16" cy="9" r="1.8" />
        <circle class="free" cx="23" cy="9" r="1.8" />
        <circle class="free" cx="9" cy="23" r="1.8" />
        <circle class="free" cx="16" cy="23" r="1.8" />
      </g>
    </svg>
  );
}
