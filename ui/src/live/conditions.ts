// Conditions of lists, as `filterBy` of the API has them, and how they are tried on an object.

const OPERATORS = ["==", "!=", "<=", ">=", "=@", "!@", "=^", "=$"] as const;
export type Operator = (typeof OPERATORS)[number];

/** One condition, `phase==Running|Pending`. */
export interface Condition {
  field: string;
  operator: Operator;
  value: string;
}

/** Reads one condition; undefined where it is none. */
export function parseCondition(text: string): Condition | undefined {
  const found = /^([A-Za-z.]+)(==|!=|<=|>=|=@|!@|=\^|=\$)(.*)$/su.exec(text);
  const operator = OPERATORS.find((known) => known === found?.[2]);
  if (!found?.[1] || !operator) return undefined;
  return { field: found[1], operator, value: found[3] ?? "" };
}

/** The condition as it stands in an address and in `filterBy`. */
export function printCondition({ field, operator, value }: Condition): string {
  return `${field}${operator}${value}`;
}

/** The value at a path of names, `status.phase`. */
export function valueAt(object: unknown, path: string): unknown {
  let at: unknown = object;
  for (const name of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function holdsFor(value: unknown, { operator, value: wanted }: Condition): boolean {
  const text = value === undefined || value === null ? "" : String(value);
  const alternatives = wanted.split("|");
  switch (operator) {
    case "==":
      return alternatives.includes(text);
    case "!=":
      return !alternatives.includes(text);
    case "=@":
      return text.includes(wanted);
    case "!@":
      return !text.includes(wanted);
    case "=^":
      return text.startsWith(wanted);
    case "=$":
      return text.endsWith(wanted);
    case "<=":
      return typeof value === "number" ? value <= Number(wanted) : text <= wanted;
    case ">=":
      return typeof value === "number" ? value >= Number(wanted) : text >= wanted;
  }
}

/** Whether a condition holds for an object; of several values for one, or with `!` for all. */
export function holds(object: unknown, condition: Condition): boolean {
  const value = valueAt(object, condition.field);
  if (!Array.isArray(value)) return holdsFor(value, condition);
  const every = condition.operator.startsWith("!");
  return every
    ? value.every((one) => holdsFor(one, condition))
    : value.some((one) => holdsFor(one, condition));
}
