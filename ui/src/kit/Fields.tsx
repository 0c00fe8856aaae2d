// Fields of forms: text, number, choice.
import {
  Button as AriaButton,
  FieldError,
  Input,
  Label,
  ListBox,
  ListBoxItem,
  NumberField as AriaNumberField,
  Popover,
  Select as AriaSelect,
  SelectValue,
  Text,
  TextArea,
  TextField as AriaTextField,
} from "react-aria-components";

import css from "./kit.module.css";

interface Common {
  label: string;
  /** Allowed values, shown before the user types. */
  help?: string | undefined;
  /** Problem of the value. */
  problem?: string | undefined;
  isRequired?: boolean;
  autoFocus?: boolean;
}

function Below({ help, problem }: Pick<Common, "help" | "problem">): React.ReactNode {
  return (
    <>
      {help && (
        <Text slot="description" className={css.help ?? ""}>
          {help}
        </Text>
      )}
      <FieldError className={css.problem ?? ""}>{problem}</FieldError>
    </>
  );
}

interface TextProps extends Common {
  value: string;
  onChange: (value: string) => void;
  type?: "text" | "password";
  autoComplete?: string;
  lines?: number;
}

export function TextField(props: TextProps): React.ReactNode {
  const { label, help, problem, lines, autoComplete, ...rest } = props;
  const input = css.input ?? "";
  return (
    <AriaTextField
      {...rest}
      autoComplete={autoComplete ?? "off"}
      validationBehavior="aria"
      isInvalid={problem !== undefined}
      className={css.field ?? ""}
    >
      <Label className={css.label ?? ""}>{label}</Label>
      {lines ? (
        <TextArea rows={lines} className={input} />
      ) : (
        <Input spellCheck={false} className={input} />
      )}
      <Below help={help} problem={problem} />
    </AriaTextField>
  );
}

interface NumberProps extends Common {
  value: number;
  onChange: (value: number) => void;
  minValue?: number;
  maxValue?: number;
  step?: number;
}

export function NumberField({ label, help, problem, ...rest }: NumberProps): React.ReactNode {
  return (
    <AriaNumberField
      {...rest}
      validationBehavior="aria"
      isInvalid={problem !== undefined}
      formatOptions={{ maximumFractionDigits: 3, useGrouping: false }}
      className={css.field ?? ""}
    >
      <Label className={css.label ?? ""}>{label}</Label>
      <Input className={css.input ?? ""} />
      <Below help={help} problem={problem} />
    </AriaNumberField>
  );
}

export interface Choice {
  id: string;
  name: string;
}

interface SelectProps extends Common {
  value: string;
  onChange: (value: string) => void;
  choices: Choice[];
}

export function Select(props: SelectProps): React.ReactNode {
  const { label, help, problem, value, onChange, choices } = props;
  return (
    <AriaSelect
      className={css.field ?? ""}
      value={value}
      onChange={(key) => onChange(String(key))}
      validationBehavior="aria"
      isInvalid={problem !== undefined}
    >
      <Label className={css.label ?? ""}>{label}</Label>
      <AriaButton className={css.select ?? ""}>
        <SelectValue />
        <span aria-hidden="true">▾</span>
      </AriaButton>
      <Below help={help} problem={problem} />
      <Popover className={css.popover ?? ""}>
        <ListBox items={choices} className={css.list ?? ""}>
          {(choice) => <ListBoxItem className={css.item ?? ""}>{choice.name}</ListBoxItem>}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}
