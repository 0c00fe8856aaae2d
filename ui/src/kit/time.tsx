// Times: relative to the server's clock; the exact one is in the title, and `ExactTime` shows it on focus.
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
  // The clock had no reader meanwhile.
  if (timer === undefined) now = Date.now() + offset;
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
const ZONE = new Intl.DateTimeFormat(undefined, { timeZoneName: "long" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const SECONDS = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The exact time with the zone of the reader. */
export function printExact(time: string): string {
  return EXACT.format(new Date(time));
}

/** The zone of the reader, in words. */
export function zone(): string {
  const parts = ZONE.formatToParts(new Date());
  return parts.find(({ type }) => type === "timeZoneName")?.value ?? "";
}

/** The time of day, and the day where it is not today. */
export function printClock(time: string, clock = CLOCK): string {
  const at = new Date(time);
  const today = at.toDateString() === new Date(Date.now() + offset).toDateString();
  return today ? clock.format(at) : `${DAY.format(at)} ${clock.format(at)}`;
}

interface Stop {
  /** A stop of Tab, where times are few: in a grid its cells are stops. */
  isStop?: boolean | undefined;
}

interface MomentProps extends Stop {
  at: string;
  children: string;
}

function Moment({ at, isStop, children }: MomentProps): React.ReactNode {
  return (
    // On focus the exact time is shown.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <time dateTime={at} title={printExact(at)} className="nowrap" tabIndex={isStop ? 0 : undefined}>
      {children}
    </time>
  );
}

/** How long ago it was. */
export function Age({ of, isStop }: Stop & { of: string }): React.ReactNode {
  const text = useSyncExternalStore(watch, () => printSpan((now - Date.parse(of)) / 1000));
  return (
    <Moment at={of} isStop={isStop}>
      {text}
    </Moment>
  );
}

/** The seconds to a moment of the browser's clock. */
export function SecondsTo({ at }: { at: number }): React.ReactNode {
  return useSyncExternalStore(watch, () =>
    printSpan(Math.max(0, Math.ceil((at + offset - now) / 1000))),
  );
}

interface ClockProps extends Stop {
  at: string;
  /** Where much happens in a minute. */
  seconds?: boolean;
}

/** When it was, by the clock. */
export function Clock({ at, seconds, isStop }: ClockProps): React.ReactNode {
  return (
    <Moment at={at} isStop={isStop}>
      {printClock(at, seconds ? SECONDS : CLOCK)}
    </Moment>
  );
}
