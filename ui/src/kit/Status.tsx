// The state of a workload or node: a shape and a word, never colour alone; codes of reasons.
import { Link } from "wouter";

import css from "./kit.module.css";

interface Look {
  shape: string;
  color: string;
}

const MOVING: Look = { shape: "◐", color: "var(--moving)" };
const ENDED: Look = { shape: "■", color: "var(--ended)" };

/** Looks of the states of workloads and nodes. */
export const LOOKS: Record<string, Look> = {
  Running: { shape: "●", color: "var(--running)" },
  Ready: { shape: "●", color: "var(--running)" },
  Pending: { shape: "◔", color: "var(--waiting)" },
  Creating: MOVING,
  Initializing: MOVING,
  Resuming: MOVING,
  Stopping: MOVING,
  Terminating: MOVING,
  Updating: MOVING,
  Deleting: MOVING,
  Degraded: { shape: "◑", color: "var(--waiting)" },
  Failed: { shape: "✕", color: "var(--failed)" },
  NotReady: { shape: "✕", color: "var(--failed)" },
  Completed: { shape: "✓", color: "var(--ended)" },
  Stopped: ENDED,
};

export function Status({
  of,
  children,
}: {
  of: string;
  children?: React.ReactNode;
}): React.ReactNode {
  const look = LOOKS[of] ?? { shape: "○", color: "var(--ended)" };
  return (
    <span className={css.status}>
      <span style={{ color: look.color }}>
        <span aria-hidden="true">{look.shape}</span> {of}
      </span>
      {children && <span className="muted">{children}</span>}
    </span>
  );
}

/** A reason code, first in its sentence. */
export function Code({ children }: { children: string }): React.ReactNode {
  return <code className={css.code}>{children}</code>;
}

/** A reason code that leads to its page. */
export function CodeLink({ children }: { children: string }): React.ReactNode {
  return (
    <Link href={`/codes/${children}`}>
      <Code>{children}</Code>
    </Link>
  );
}

/** GPUs as people write them: `2`, `0.5`. */
export function printGpus(amount: number): string {
  return String(Math.round(amount * 1000) / 1000);
}

/** Bytes as people write them: `100 MiB`, `1.5 GiB`. */
export function printBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return `${Math.round((bytes / 1024 ** unit) * 10) / 10} ${units[unit]}`;
}

/** `1 GPU`, `2 GPUs`. */
export function countGpus(amount: number): string {
  return `${printGpus(amount)} ${amount === 1 ? "GPU" : "GPUs"}`;
}
