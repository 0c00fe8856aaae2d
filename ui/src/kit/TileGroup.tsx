// Tiles of which one is chosen: projects, galleries of assets. The radio buttons are the browser's own,
// laid over their tiles: each click is one, and Tab leads into the group whatever was chosen before.
import { useId, useState } from "react";

import css from "./kit.module.css";
import { Search } from "./Search";
import { NothingMatches } from "./States";
import own from "./tiles.module.css";

export interface Tile {
  id: string;
  name: string;
  /** One line below the name. */
  detail?: string;
}

/** Tiles on the page; with more, one searches. */
export const TILES_MAX = 24;

interface Props {
  label: string;
  tiles: Tile[];
  /** How many there are, and the words by which the tiles were found elsewhere. */
  search?: { total: number; words: string; onChange: (words: string) => void };
  value: string | null;
  onChange: (id: string) => void;
  problem?: string | undefined;
  /** Shown where there are no tiles at all. */
  empty?: React.ReactNode;
}

/** The tiles, with the chosen one in its place after it was deleted. */
function useTiles({ tiles, value }: Props): Tile[] {
  const [last, setLast] = useState<{ at: number; tile: Tile }>();
  const at = tiles.findIndex(({ id }) => id === value);
  const tile = tiles[at];
  if (tile) {
    if (last?.at !== at || last.tile.id !== tile.id) setLast({ at, tile });
    return tiles;
  }
  if (value === null || last?.tile.id !== value) return tiles;
  return tiles.toSpliced(last.at, 0, { ...last.tile, detail: "deleted" });
}

export function TileGroup(props: Props): React.ReactNode {
  const { label, value, onChange, problem } = props;
  const [words, setWords] = useState("");
  const all = useTiles(props);
  const matching = all.filter(({ name }) => name.includes(words));
  const tiles = props.search
    ? all
    : matching.filter(({ id }, index) => index < TILES_MAX || id === value);
  const search = props.search ?? { total: matching.length, words, onChange: setWords };
  const isSearched = search.words !== "" || search.total > TILES_MAX;
  const id = useId();
  const [labelId, problemId] = [`${id}-label`, `${id}-problem`];
  return (
    <div
      role="radiogroup"
      className={css.field}
      aria-labelledby={labelId}
      aria-invalid={problem !== undefined}
      aria-describedby={problem && problemId}
      data-invalid={problem && true}
    >
      {/* Beside the label: the tiles do not move when it appears. */}
      <div className={own.tileLabel}>
        <span id={labelId} className={css.label}>
          {label}
        </span>
        {problem && (
          <span id={problemId} className={css.problem}>
            {problem}
          </span>
        )}
      </div>
      {isSearched && (
        <div className={own.tileSearch}>
          <Search label={`Search ${label}`} value={search.words} onChange={search.onChange} />
          <span className="muted">
            {Math.min(search.total, TILES_MAX)} of {search.total}
          </span>
        </div>
      )}
      <div className={own.tiles}>
        {tiles.map((tile) => (
          <label key={tile.id} className={own.tile} title={tile.detail}>
            <input
              type="radio"
              name={id}
              value={tile.id}
              checked={tile.id === value}
              onChange={() => onChange(tile.id)}
            />
            <b>{tile.name}</b>
            {tile.detail && <span>{tile.detail}</span>}
          </label>
        ))}
      </div>
      {tiles.length === 0 &&
        (search.words === "" ? (
          props.empty
        ) : (
          <NothingMatches clear="Clear the search" onClear={() => search.onChange("")} />
        ))}
    </div>
  );
}
