// A button that shows details beside it.
import { Dialog, DialogTrigger, Popover } from "react-aria-components";

import { Button } from "./Button";
import css from "./kit.module.css";

interface Props {
  label: React.ReactNode;
  /** Name of the details. */
  title: string;
  children: React.ReactNode;
}

export function Popup({ label, title, children }: Props): React.ReactNode {
  return (
    <DialogTrigger>
      <Button kind="plain">{label}</Button>
      <Popover className={css.popover ?? ""} placement="bottom end">
        <Dialog className={css.filter ?? ""} aria-label={title}>
          {children}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}
