// Menus of actions behind a button.
import { Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from "react-aria-components";

import { Button } from "./Button";
import css from "./kit.module.css";

export interface MenuAction {
  id: string;
  name: string;
  keys?: string;
  /** The action is the current state. */
  isChosen?: boolean;
  /** The action starts another group. */
  isFirst?: boolean;
  run: () => void;
}

interface Props {
  label: React.ReactNode;
  /** Name for screen readers, if the label is only a sign. */
  name?: string;
  kind?: "main" | "plain";
  actions: MenuAction[];
}

export function Menu({ label, name, kind, actions }: Props): React.ReactNode {
  return (
    <MenuTrigger>
      <Button {...(kind && { kind })} {...(name && { "aria-label": name })}>
        {label}
      </Button>
      <Popover className={css.popover ?? ""}>
        <AriaMenu className={css.list ?? ""} aria-label={name ?? "Actions"}>
          {actions.map(({ id, name: text, keys, isChosen, isFirst, run }) => (
            <MenuItem
              key={id}
              id={id}
              textValue={text}
              onAction={run}
              className={`${css.item} ${isFirst ? css.first : ""}`}
            >
              <span>{text}</span>
              {keys && <kbd className="muted">{keys}</kbd>}
              {isChosen && <span aria-label="chosen">✓</span>}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
