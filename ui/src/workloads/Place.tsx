// The place of a workload: beside the list as a pane, or instead of the list as a page.
import { useEffect, useRef } from "react";
import { Link } from "wouter";

import { Button } from "../kit/Button";
import kit from "../kit/kit.module.css";
import page from "../kit/page.module.css";

export interface Place {
  isPage: boolean;
  /** Address of the list alone. */
  listAt: string;
  /** Address of the workload as a page. */
  pageAt: string;
  onGo: (address: string) => void;
}

interface Props {
  label: string;
  place: Place;
  children: React.ReactNode;
}

export function PlaceOf({ label, place, children }: Props): React.ReactNode {
  const { isPage, listAt, pageAt, onGo } = place;
  const own = useRef<HTMLElement>(null);
  // A page hides the row that had the focus, and keys are for the page from then on.
  useEffect(() => {
    if (isPage) own.current?.focus({ preventScroll: true });
  }, [isPage]);
  /** Before a tab takes the key as its own; on a link or a button it is theirs. */
  const capture = (event: React.KeyboardEvent) => {
    const { key, ctrlKey, metaKey, target } = event;
    if (isPage || key !== "Enter" || !(ctrlKey || metaKey)) return;
    if (!(target instanceof Element) || target.closest("a, button")) return;
    event.stopPropagation();
    onGo(pageAt);
  };
  return (
    <section
      ref={own}
      className={page.pane}
      aria-label={label}
      tabIndex={-1}
      onKeyDownCapture={capture}
      onKeyDown={(event) => event.key === "Escape" && onGo(listAt)}
    >
      {isPage && (
        <p className={page.toList}>
          <Link href={listAt}>Back to the list</Link>
        </p>
      )}
      {children}
    </section>
  );
}

/** Opens the pane as a page, and closes it. */
export function PlaceButtons({ isPage, listAt, pageAt, onGo }: Place): React.ReactNode {
  if (isPage) return undefined;
  return (
    <>
      <Link
        href={pageAt}
        className={`${kit.button} ${page.toPage}`}
        data-kind="plain"
        aria-label="Open as a page"
        title="Open as a page"
      >
        ⤢
      </Link>
      <Button kind="plain" aria-label="Close the pane" onPress={() => onGo(listAt)}>
        ✕
      </Button>
    </>
  );
}
