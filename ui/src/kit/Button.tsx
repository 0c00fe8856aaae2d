// Buttons, and links that look like them.
import { Button as AriaButton, type ButtonProps } from "react-aria-components";

import css from "./kit.module.css";

interface Props extends ButtonProps {
  /** `main` for the one main action of a page or dialog. */
  kind?: "main" | "danger" | "plain";
}

export function Button({ kind, ...props }: Props): React.ReactNode {
  return <AriaButton {...props} className={css.button ?? ""} data-kind={kind} />;
}
