// Saved views of a list: addresses with a name, kept in this browser.
import { useState } from "react";
import { useLocation, useSearch } from "wouter";

import { Button } from "../kit/Button";
import { Actions, Dialog } from "../kit/Dialog";
import { TextField } from "../kit/Fields";
import kit from "../kit/kit.module.css";
import { Menu } from "../kit/Menu";
import { useStored } from "../api/stored";

/** The query of each view by its name. */
type Saved = [name: string, query: string][];

export function Views({ label }: { label: string }): React.ReactNode {
  const [saved, setSaved] = useStored<Saved>(`elastane-views-${label}`, []);
  const [isOpen, setOpen] = useState(false);
  const [place, navigate] = useLocation();
  const query = useSearch();
  const open = (to: string) => navigate(`${place}${to && `?${to}`}`);
  return (
    <>
      <Menu
        kind="plain"
        label="Views ▾"
        name="Views"
        actions={[
          { id: "-", name: "All, as at first", isChosen: query === "", run: () => open("") },
          ...saved.map(([name, to]) => ({
            id: `view ${name}`,
            name,
            isChosen: to === query,
            run: () => open(to),
          })),
          { id: "+", name: "Save or delete…", isFirst: true, run: () => setOpen(true) },
        ]}
      />
      <Dialog title="Views" isOpen={isOpen} onClose={() => setOpen(false)}>
        <Save
          saved={saved}
          onSave={(name) => {
            setSaved([...saved.filter(([other]) => other !== name), [name, query]]);
            setOpen(false);
          }}
          onDelete={(name) => setSaved(saved.filter(([other]) => other !== name))}
        />
      </Dialog>
    </>
  );
}

interface SaveProps {
  saved: Saved;
  onSave: (name: string) => void;
  onDelete: (name: string) => void;
}

function Save({ saved, onSave, onDelete }: SaveProps): React.ReactNode {
  const [name, setName] = useState("");
  const [tried, setTried] = useState(false);
  const [deleted, setDeleted] = useState(0);
  const given = name.trim();
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (given) onSave(given);
  };
  return (
    <>
      <form className={kit.field} style={{ gap: 12 }} onSubmit={submit}>
        {/* Takes the focus again when the button that had it is gone: else Escape would close nothing. */}
        <TextField
          key={deleted}
          label="Name of this view"
          help="keeps search, filters, order and columns in this browser"
          value={name}
          onChange={setName}
          problem={tried && !given ? "a name is needed" : undefined}
          autoFocus
        />
        <Actions>
          <Button type="submit" kind="main">
            SAVE
          </Button>
        </Actions>
      </form>
      <ul>
        {saved.map(([one]) => (
          <li key={one} className={kit.item}>
            <span>{one}</span>
            <Button
              aria-label={`Delete the view ${one}`}
              onPress={() => {
                onDelete(one);
                setDeleted(deleted + 1);
              }}
            >
              DELETE
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
