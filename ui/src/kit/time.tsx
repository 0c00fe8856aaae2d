// Times: relative to the server's clock, exact on hover and focus.
import { useSyncExternalStore } from "react";

let offset = 0;
let now = Date.now();
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** The clock of the server; that of the browser may be a day off. */
export function setServerTime(time: string): void {
  const server = Date.parse(time);
  if (Number.isNaN(server)) return;
  const next = server - Date.now();
  // Small differences are the way of the message.
  if (Math.abs(next - offset) > 2000) {
    offset = next;
    now = Date.now() + offset;
    for (const watcher of watchers) watcher();
  }
}

/** A moment of the browser's clock, by that of the server, as soon as that is known. */
export function useAtServer(browserMs: number): string {
  const shift = useSyncExternalStore(watch, () => offset);
  return new Date(browserMs + shift).toISOString();
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= setInterval(() => {
    now = Date.now() + offset;
    for (const one of watchers) one();
  }, 1000);
  return () => {
    watchers.delete(watcher);
    if (watchers.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

const STEPS: [seconds: number, unit: string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
];

/** A span in its largest unit, `4 min`. */
export function printSpan(seconds: number): string {
  for (const [size, unit] of STEPS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The exact time with the zone of the reader. */
export function printExact(time: string): string {
  return EXACT.format(new Date(time));
}

/** The time of day, and the day where it is not today. */
export function printClock(time: string, clock = CLOCK): string {
  const at = new Date(time);
  const today = at.toDateString() === new Date(Date.now() + offset).toDateString();
  return today ? clock.format(at) : `${DAY.format(at)} ${clock.format(at)}`;
}

/** How long ago it was. */
export function Age({ of }: { of: string }): React.ReactNode {
  const text = useSyncExternalStore(watch, () => printSpan((now - Date.parse(of)) / 1000));
  return (
    <time dateTime={of} title={printExact(of)} className="nowrap">
      {text}
    </time>
  );
}

interface ClockProps {
  at: string;
  /** Where much happens in a minute. */
  seconds?: boolean;
}

/** When it was, by the clock. */
export function Clock({ at, seconds }: ClockProps): React.ReactNode {
  return (
    <time dateTime={at} title={printExact(at)} className="nowrap">
      {printClock(at, seconds ? SECONDS : CLOCK)}
    </time>
  );
}
