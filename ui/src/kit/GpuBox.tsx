// A GPU as a box, filled from below by what is held of it.
import { Button as AriaButton, Tooltip, TooltipTrigger } from "react-aria-components";

import css from "./bars.module.css";

interface Props {
  /** Shares of the GPU by holder, as text. */
  label: string;
  isBroken: boolean;
  parts: { id: string; share: number; fill: string }[];
}

export function GpuBox({ label, isBroken, parts }: Props): React.ReactNode {
  return (
    <TooltipTrigger delay={150}>
      <AriaButton className={css.gpu ?? ""} aria-label={label}>
        {parts.map(({ id, share, fill }) => (
          <span key={id} style={{ height: `${share * 100}%`, background: fill }} />
        ))}
        {isBroken && <b aria-hidden="true">×</b>}
      </AriaButton>
      <Tooltip className={css.tip ?? ""}>{label}</Tooltip>
    </TooltipTrigger>
  );
}
