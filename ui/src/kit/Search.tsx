// A field to search in, with a button that empties it.
import { Button, Input, SearchField } from "react-aria-components";

import css from "./kit.module.css";

interface Props {
  label: string;
  placeholder?: string;
  /** Left out where what is around it keeps the value. */
  value?: string;
  onChange?: (words: string) => void;
  autoFocus?: boolean;
}

export function Search({ label, placeholder = "Search", ...rest }: Props): React.ReactNode {
  return (
    <SearchField {...rest} aria-label={label} className={css.search ?? ""}>
      <Input placeholder={placeholder} className={css.input ?? ""} spellCheck={false} />
      <Button>✕</Button>
    </SearchField>
  );
}
