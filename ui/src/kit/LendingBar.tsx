// A bar of GPUs: within the quota solid, borrowed hatched, lent or free light, the quota a tick.
import css from "./bars.module.css";
import { countGpus, printGpus } from "./Status";

interface Props {
  allocated: number;
  quota: number;
  fairShare?: number;
  color: string;
  /** GPUs that the whole width stands for. */
  full: number;
}

/** The parts of a bar with their names. */
export function LendingLegend(): React.ReactNode {
  const parts: [name: string, part: React.ReactNode][] = [
    ["in quota", <span key="part" className={css.part} style={{ background: "currentcolor" }} />],
    ["borrowed", <span key="over" className={css.over} />],
    ["free in quota", <span key="free" className={css.free} />],
    ["quota", <span key="tick" className={css.tick} />],
    ["fair share", <span key="fair" className={css.fair} />],
  ];
  return (
    <ul className={css.legend}>
      {parts.map(([name, part]) => (
        <li key={name}>
          <span className={css.track} aria-hidden="true">
            {part}
          </span>
          {name}
        </li>
      ))}
    </ul>
  );
}

export function LendingBar({ allocated, quota, fairShare, color, full }: Props): React.ReactNode {
  const percent = (gpus: number) => `${(100 * Math.min(gpus, full)) / full}%`;
  const within = Math.min(allocated, quota);
  const over = allocated - within;
  const said = [
    `${printGpus(allocated)} of a quota of ${countGpus(quota)}`,
    over > 0 && `${printGpus(over)} borrowed`,
    fairShare !== undefined && fairShare !== quota && `fair share ${printGpus(fairShare)}`,
  ];
  const label = said.filter(Boolean).join(", ");
  return (
    <span className={css.track} role="img" aria-label={label} title={label}>
      <span className={css.free} style={{ width: percent(quota) }} />
      <span className={css.part} style={{ width: percent(within), background: color }} />
      {over > 0 && (
        <span
          className={css.over}
          style={{ insetInlineStart: percent(within), width: percent(over), color }}
        />
      )}
      <span className={css.tick} style={{ insetInlineStart: percent(quota) }} />
      {fairShare !== undefined && fairShare > 0 && fairShare !== quota && (
        <span className={css.fair} style={{ insetInlineStart: percent(fairShare) }} />
      )}
    </span>
  );
}
