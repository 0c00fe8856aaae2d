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

const WORDS: Record<Operator, string> = {
  "==": "is",
  "!=": "is not",
  "<=": "is at most",
  ">=": "is at least",
  "=@": "contains",
  "!@": "does not contain",
  "=^": "begins with",
  "=$": "ends with",
};

/** The condition in words, with the name of its field: `Status is Pending or Running`. */
export function sayCondition({ operator, value }: Condition, name: string): string {
  const hasAlternatives = operator === "==" || operator === "!=";
  const wanted = hasAlternatives ? value.split("|").join(" or ") : value;
  return `${name} ${WORDS[operator]} ${shorten(wanted)}`;
}

/** The beginning of a text that may be of any length. */
export function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
}

/** The value at a path of names, `status.phase`. */
export function valueAt(object: unknown, path: string): unknown {
  let at: unknown = object;
  if (!path.includes(".")) return (object as Record<string, unknown> | undefined)?.[path];
  for (const name of path.split(".")) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function asText(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}

/** Test of one value by a condition. */
function asks({ operator, value: wanted }: Condition): (value: unknown) => boolean {
  const alternatives = new Set(wanted.split("|"));
  switch (operator) {
    case "==":
      return (value) => alternatives.has(asText(value));
    case "!=":
      return (value) => !alternatives.has(asText(value));
    case "=@":
      return (value) => asText(value).includes(wanted);
    case "!@":
      return (value) => !asText(value).includes(wanted);
    case "=^":
      return (value) => asText(value).startsWith(wanted);
    case "=$":
      return (value) => asText(value).endsWith(wanted);
    case "<=":
      return (value) =>
        typeof value === "number" ? value <= Number(wanted) : asText(value) <= wanted;
    case ">=":
      return (value) =>
        typeof value === "number" ? value >= Number(wanted) : asText(value) >= wanted;
  }
}

/** The test of a condition on the value of its field; of several for one, or with `!` for all. */
export function test(condition: Condition): (value: unknown) => boolean {
  const holds = asks(condition);
  const every = condition.operator.startsWith("!");
  return (value) => {
    if (!Array.isArray(value)) return holds(value);
    return every ? value.every(holds) : value.some(holds);
  };
}
