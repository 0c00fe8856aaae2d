// Sending a form: once, however often one presses, with what is wrong at its fields.
import { useRef, useState } from "react";

import type { ApiError } from "./http";

interface Sending<T> {
  /** True if the form is filled as required. */
  isReady: boolean;
  send: () => Promise<T>;
  onSent: (made: T) => void;
}

export interface Submit {
  /** The user tried to send the form: its problems are shown from now on. */
  tried: boolean;
  pending: boolean;
  /** The server's refusal of the last request. */
  error: ApiError | undefined;
  submit: (event: React.FormEvent<HTMLFormElement>) => void;
}

/** Brings the first field with a problem into view, once the problem is shown. */
function focusProblem(form: HTMLFormElement): void {
  requestAnimationFrame(() => {
    const field = "[data-invalid] :is(input, textarea, button)";
    form.querySelector<HTMLElement>(field)?.focus();
  });
}

export function useSubmit<T>({ isReady, send, onSent }: Sending<T>): Submit {
  const [tried, setTried] = useState(false);
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<ApiError>();
  const isOnItsWay = useRef(false);
  const submit = (event: React.FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    // A form may stand in another one: this one is meant, not that.
    event.stopPropagation();
    const form = event.currentTarget;
    setTried(true);
    if (!isReady) focusProblem(form);
    if (!isReady || isOnItsWay.current) return;
    isOnItsWay.current = true;
    setPending(true);
    setError(undefined);
    send()
      .then(onSent, (failure: ApiError) => {
        setError(failure);
        focusProblem(form);
      })
      .finally(() => {
        isOnItsWay.current = false;
        setPending(false);
      });
  };
  return { tried, pending, error, submit };
}
