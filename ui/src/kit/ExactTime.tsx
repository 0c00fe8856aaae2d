// The exact time of what has the focus: one tooltip for all times, which are not stops of Tab for it.
import { useEffect, useState } from "react";

import css from "./kit.module.css";
import { printExact } from "./time";

const ID = "exact-time";

/** The time that has the focus, or that is in the cell of a grid that has it. */
function timeIn(focused: Element | null): HTMLTimeElement | null {
  if (focused instanceof HTMLTimeElement) return focused;
  return focused?.matches("[role=gridcell]") ? focused.querySelector("time") : null;
}

interface Shown {
  text: string;
  left: number;
  top: number;
}

export function ExactTime(): React.ReactNode {
  const [shown, setShown] = useState<Shown>();
  useEffect(() => {
    let described: Element | undefined;
    const hide = () => {
      described?.removeAttribute("aria-describedby");
      described = undefined;
      setShown(undefined);
    };
    const show = () => {
      hide();
      const focused = document.activeElement;
      const time = timeIn(focused);
      // A reader with a mouse has the title.
      if (!time || !focused?.matches(":focus-visible")) return;
      const { left, bottom } = time.getBoundingClientRect();
      described = focused;
      described.setAttribute("aria-describedby", ID);
      setShown({ text: printExact(time.dateTime), left, top: bottom });
    };
    // The browser brings an element into view after it has the focus.
    const follow = () => described && show();
    // Before the pane or the list takes the key: one layer at a time.
    const keyDown = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !described) return;
      event.stopPropagation();
      hide();
    };
    document.addEventListener("focusin", show);
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", keyDown, { capture: true });
    document.addEventListener("scroll", follow, { capture: true, passive: true });
    return () => {
      hide();
      document.removeEventListener("focusin", show);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("keydown", keyDown, { capture: true });
      document.removeEventListener("scroll", follow, { capture: true });
    };
  }, []);
  return (
    shown && (
      <div
        id={ID}
        role="tooltip"
        className={css.tooltip}
        style={{ left: `min(${shown.left}px, 100vw - 260px)`, top: shown.top + 4 }}
      >
        {shown.text}
      </div>
    )
  );
}
