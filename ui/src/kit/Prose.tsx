// Text in the small part of Markdown that pages of codes use: headings, paragraphs, lists, code, bold
// and links.
import { Link } from "wouter";

import page from "./page.module.css";

/** A piece of a line: text, code between backticks, bold, or a link. */
export interface Piece {
  kind: "text" | "code" | "bold" | "link";
  text: string;
  /** Of a link. */
  to?: string;
}

/** A heading or paragraph of one line, or a list of lines. */
export interface Block {
  tag: "h2" | "p" | "ul" | "ol";
  lines: string[];
}

/** How lines of a block begin; those of a paragraph begin with nothing. */
const BEGINS: [Block["tag"], RegExp][] = [
  ["h2", /^## /u],
  ["ul", /^- /u],
  ["ol", /^\d+\. /u],
  ["p", /^/u],
];

/** The blocks of a text whose lines are wrapped. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  for (const part of markdown.split(/\n{2,}/u)) {
    // A list may follow a paragraph without an empty line.
    for (const wrapped of part.split(/\n(?=- |\d+\. )/u)) {
      const line = wrapped.replaceAll(/\s*\n\s*/gu, " ").trim();
      const [tag, begin] = BEGINS.find(([, of]) => of.test(line)) ?? ["p", /^/u];
      const text = line.replace(begin, "");
      const last = blocks.at(-1);
      if (last?.tag === tag && (tag === "ul" || tag === "ol")) last.lines.push(text);
      else if (text !== "") blocks.push({ tag, lines: [text] });
    }
  }
  return blocks;
}

/** The pieces of a line. */
export function piecesOf(line: string): Piece[] {
  const parts = line.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/u);
  return parts.filter(Boolean).map((part) => {
    if (part.startsWith("`") && part.length > 1) return { kind: "code", text: part.slice(1, -1) };
    if (part.startsWith("**")) return { kind: "bold", text: part.slice(2, -2) };
    const [, text, to] = /^\[(.+)\]\((.+)\)$/u.exec(part) ?? [];
    return text && to ? { kind: "link", text, to } : { kind: "text", text: part };
  });
}

/** Parts with their places as keys: the text never changes its order, and may say a thing twice. */
function inOrder<T>(parts: T[]): [string, T][] {
  return parts.map((part, at) => [String(at), part]);
}

interface ProseProps {
  children: string;
  /** The address of a link; nothing where it leads to a document that is not served. */
  addressOf: (to: string) => string | undefined;
}

export function Prose({ children, addressOf }: ProseProps): React.ReactNode {
  const shown = (line: string | undefined) => <Line of={line ?? ""} addressOf={addressOf} />;
  return (
    <div className={page.stack}>
      {inOrder(blocksOf(children)).map(([block, { tag: Tag, lines }]) => (
        <Tag key={block}>
          {Tag === "ul" || Tag === "ol"
            ? inOrder(lines).map(([item, line]) => <li key={item}>{shown(line)}</li>)
            : shown(lines[0])}
        </Tag>
      ))}
    </div>
  );
}

function Line({ of, addressOf }: { of: string } & Pick<ProseProps, "addressOf">): React.ReactNode {
  return inOrder(piecesOf(of)).map(([key, { kind, text, to }]) => {
    const address = to && addressOf(to);
    if (kind === "code") return <code key={key}>{text}</code>;
    if (kind === "bold") return <b key={key}>{text}</b>;
    if (!address) return text;
    return (
      <Link key={key} href={address}>
        {text}
      </Link>
    );
  });
}
