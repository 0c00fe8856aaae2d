// A list of commands and places with a search: what is typed narrows it, Enter goes there.
import { Autocomplete, ListBox, ListBoxItem } from "react-aria-components";

import { Dialog } from "./Dialog";
import css from "./kit.module.css";
import { Search } from "./Search";

export interface Command {
  id: string;
  name: string;
  /** What it is: a page, a workload of a project. */
  what: string;
  run: () => void;
}

interface Props {
  title: string;
  words: string;
  onWords: (words: string) => void;
  commands: Command[];
  /** How many more match than are listed. */
  more: number;
  onClose: () => void;
}

export function CommandPalette(props: Props): React.ReactNode {
  const { title, words, onWords, commands, more, onClose } = props;
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  /** Enter takes the first: it may have come after the last letter, and has no focus then. */
  const keyDown = (event: React.KeyboardEvent) => {
    const isChosen = (event.target as Element).hasAttribute("aria-activedescendant");
    if (event.key !== "Enter" || isChosen) return;
    event.preventDefault();
    run(commands[0]);
  };
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <div className={css.palette} onKeyDownCapture={keyDown}>
        <Autocomplete inputValue={words} onInputChange={onWords}>
          <Search label={title} placeholder="Page, command, workload or project" autoFocus />
          <ListBox
            aria-label="What matches"
            className={css.list ?? ""}
            items={commands}
            onAction={(key) => run(commands.find(({ id }) => id === key))}
            renderEmptyState={() => <p className={`muted ${css.more}`}>Nothing matches</p>}
          >
            {({ id, name, what }) => (
              <ListBoxItem id={id} className={css.item ?? ""} textValue={name}>
                <bdi>{name}</bdi>
                <span className="muted">{what}</span>
              </ListBoxItem>
            )}
          </ListBox>
        </Autocomplete>
        {more > 0 && <p className={`muted ${css.more}`}>{more} more: search</p>}
      </div>
    </Dialog>
  );
}
