// The message that the chosen template was deleted, in the line with the title.
import { Button } from "../kit/Button";
import page from "../kit/page.module.css";
import { usePlace, useTemplates } from "./choices";
import { GONE, type StepProps } from "./draft";
import { withTemplate } from "./template";

/** Beside the title: the form below, in which one types, does not move when it appears. */
export function GoneTemplate({ draft, change }: StepProps): React.ReactNode {
  const templates = useTemplates(draft, usePlace(draft));
  if (!templates?.isGone) return null;
  return (
    <div role="alert" className={page.beside}>
      <span>
        Template {draft.template?.name} {GONE}. What you typed is kept.
      </span>
      <Button onPress={() => change(withTemplate(draft, undefined, undefined))}>
        START FROM SCRATCH
      </Button>
    </div>
  );
}
