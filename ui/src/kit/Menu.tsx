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
          {actions.map(itemOf)}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}

interface AtProps {
  /** What the menu is beside. */
  element: Element | null;
  name: string;
  actions: MenuAction[];
  onClose: () => void;
}

/** A menu that a key opens beside what has the focus. */
export function MenuAt({ element, name, actions, onClose }: AtProps): React.ReactNode {
  return (
    <Popover
      className={css.popover ?? ""}
      triggerRef={{ current: element }}
      placement="bottom start"
      isOpen
      onOpenChange={(open) => !open && onClose()}
    >
      <AriaMenu className={css.list ?? ""} aria-label={name} autoFocus="first" onClose={onClose}>
        {actions.map(itemOf)}
      </AriaMenu>
    </Popover>
  );
}

function itemOf({ id, name, keys, isChosen, isFirst, run }: MenuAction): React.ReactNode {
  return (
    <MenuItem
      key={id}
      id={id}
      textValue={name}
      onAction={run}
      className={`${css.item} ${isFirst ? css.first : ""}`}
    >
      <span>{name}</span>
      {keys && <kbd className="muted">{keys}</kbd>}
      {isChosen && <span aria-label="chosen">✓</span>}
    </MenuItem>
  );
}
