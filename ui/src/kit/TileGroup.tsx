// Tiles of which one is chosen: projects, galleries of assets.
import { Label, Radio, RadioGroup, Text } from "react-aria-components";

import css from "./kit.module.css";

export interface Tile {
  id: string;
  name: string;
  /** One line below the name. */
  detail?: string;
}

interface Props {
  label: string;
  tiles: Tile[];
  value: string | null;
  onChange: (id: string) => void;
  problem?: string | undefined;
}

export function TileGroup({ label, tiles, value, onChange, problem }: Props): React.ReactNode {
  return (
    <RadioGroup
      className={css.field ?? ""}
      value={value}
      onChange={onChange}
      isInvalid={problem !== undefined}
      orientation="horizontal"
      validationBehavior="aria"
    >
      <Label className={css.label ?? ""}>{label}</Label>
      <div className={css.tiles}>
        {tiles.map(({ id, name, detail }) => (
          <Radio key={id} value={id} className={css.tile ?? ""}>
            <b>{name}</b>
            {detail && <span>{detail}</span>}
          </Radio>
        ))}
      </div>
      {problem && (
        <Text slot="errorMessage" className={css.problem ?? ""}>
          {problem}
        </Text>
      )}
    </RadioGroup>
  );
}
