// Every widget of the kit with its states, at `/kit` while developing. No part of the built interface.
import { useEffect, useState } from "react";
import { I18nProvider } from "react-aria-components";

import { Boundary } from "../kit/Boundary";
import { Button } from "../kit/Button";
import { CommandPalette } from "../kit/CommandPalette";
import { Actions, Confirm, Dialog } from "../kit/Dialog";
import { ExactTime } from "../kit/ExactTime";
import { NumberField, Select, TextField } from "../kit/Fields";
import { GpuBox } from "../kit/GpuBox";
import { Grid } from "../kit/grid/Grid";
import { LendingBar, LendingLegend } from "../kit/LendingBar";
import { Menu } from "../kit/Menu";
import page from "../kit/page.module.css";
import { Popup } from "../kit/Popup";
import { Prose } from "../kit/Prose";
import { Search } from "../kit/Search";
import * as States from "../kit/States";
import { Code, CodeLink, LOOKS, Status } from "../kit/Status";
import { Tabs } from "../kit/Tabs";
import { TileGroup } from "../kit/TileGroup";
import { Age, Clock } from "../kit/time";

const nothing = () => undefined;
const AT = "2026-11-28T09:00:00.000Z";
const CHOICES = ["one", "two", "three"].map((name) => ({ id: name, name }));
const ACTIONS = [
  { id: "a", name: "Open", keys: "Enter", run: nothing },
  { id: "b", name: "Chosen", isChosen: true, run: nothing },
  { id: "c", name: "Of another group", isFirst: true, run: nothing },
];
const LONG = "a-name-as-long-as-the-name-of-a-workload-may-be-here";

/** A button that opens a dialog. */
function Opened(props: {
  name: string;
  children: (close: () => void) => React.ReactNode;
}): React.ReactNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onPress={() => setOpen(true)}>{props.name}</Button>{" "}
      {isOpen && props.children(() => setOpen(false))}
    </>
  );
}

function Fields({ problem }: { problem?: string }): React.ReactNode {
  const [text, setText] = useState("text");
  const [number, setNumber] = useState(2);
  const [choice, setChoice] = useState("two");
  const ofText = { value: text, onChange: setText, problem };
  const ofChoice = { value: choice, onChange: setChoice, problem };
  return (
    <>
      <TextField label="Text" help="of any length" {...ofText} />
      <TextField label="Lines" lines={3} {...ofText} />
      <NumberField label="Number" value={number} onChange={setNumber} problem={problem} />
      <Select label="Select" choices={CHOICES} {...ofChoice} />
      <TileGroup label="Tiles" tiles={CHOICES} {...ofChoice} />
    </>
  );
}

function Palette({ onClose }: { onClose: () => void }): React.ReactNode {
  const [words, onWords] = useState("");
  const commands = ACTIONS.map((action) => ({ ...action, what: "page" }));
  return <CommandPalette title="Jump to" more={3} {...{ commands, words, onWords, onClose }} />;
}

function SomeTabs(): React.ReactNode {
  const [value, onChange] = useState("one");
  const tabs = CHOICES.map((choice) => ({ ...choice, content: `Content of ${choice.name}` }));
  return <Tabs label="Tabs" {...{ tabs, value, onChange }} />;
}

const ROWS = ["a1", "b2", LONG].map((id) => ({ id, object: id, gone: id === "b2" }));
const COLUMNS = [
  { id: "name", name: "Name", width: 120, grows: 1, rank: 0, sort: "name", cell: String },
  {
    id: "length",
    name: "Length",
    width: 80,
    rank: 1,
    isNumber: true,
    cell: (name: string) => name.length,
  },
];

function Rows({ rows }: { rows: typeof ROWS | undefined }): React.ReactNode {
  return (
    <div style={{ display: "flex", height: 180 }}>
      <Grid
        label="Grid"
        columns={COLUMNS}
        rows={rows}
        from={0}
        total={rows?.length ?? 0}
        fresh={rows?.length ? 2 : 0}
        order=""
        sort="name"
        descending={false}
        selected="a1"
        onSort={nothing}
        onRange={nothing}
        onFrozen={nothing}
        empty={<States.Empty title="Nothing here">What it is for.</States.Empty>}
      />
    </div>
  );
}

function Failing(): React.ReactNode {
  throw new Error("the message of an error of the page");
}

const refused = Object.assign(new Error("the sentence of the server"), { requestId: "r-1" });
const gpu = (share: number) => [{ id: "a1", share, fill: "var(--running)" }];
const bar = { quota: 4, full: 8, color: "var(--accent)" };

/** What there is, by the name of its section. */
const SECTIONS: Record<string, React.ReactNode> = {
  "Buttons, menus, what floats": (
    <>
      <Button>PLAIN</Button> <Button kind="main">MAIN</Button> <Button kind="danger">DANGER</Button>{" "}
      <Button kind="plain">Without a frame</Button> <Button isDisabled>DISABLED</Button>{" "}
      <Button isPending>PENDING</Button> <Menu label="Menu ▾" actions={ACTIONS} />{" "}
      <Popup label="Popup" title="Details">
        Details
      </Popup>{" "}
      {[false, true].map((isSheet) => (
        <Opened key={String(isSheet)} name={isSheet ? "Sheet" : "Dialog"}>
          {(close) => (
            <Dialog title="New" isOpen isSheet={isSheet} onClose={close}>
              <Fields />
              <Actions>
                <Button onPress={close}>CLOSE</Button>
              </Actions>
            </Dialog>
          )}
        </Opened>
      ))}
      <Opened name="Confirm, which fails">
        {(close) => (
          <Confirm
            title="Delete a1?"
            action="DELETE"
            onClose={close}
            onConfirm={() => Promise.reject(refused)}
          >
            Its output is lost.
          </Confirm>
        )}
      </Opened>
      <Opened name="Command palette">{(close) => <Palette onClose={close} />}</Opened>
    </>
  ),
  Fields: <Fields />,
  "Fields with a problem": <Fields problem="at most 8" />,
  Search: <Search label="Search" />,
  Tabs: <SomeTabs />,
  "States of workloads and nodes, codes, times": (
    <>
      {[...Object.keys(LOOKS), "Unknown"].map((state) => (
        <p key={state}>
          <Status of={state}>4 min</Status>
        </p>
      ))}
      <Code>P102</Code> <CodeLink>P102</CodeLink> <Clock at={AT} isStop /> <Clock at={AT} seconds />{" "}
      <Age of={AT} isStop />
    </>
  ),
  GPUs: (
    <>
      <GpuBox label="GPU 0: free" isBroken={false} parts={[]} />{" "}
      <GpuBox label="GPU 1: a1 0.5" isBroken={false} parts={gpu(0.5)} />{" "}
      <GpuBox label="GPU 2: a1 1" isBroken={false} parts={gpu(1)} />{" "}
      <GpuBox label="GPU 3: out of service" isBroken parts={[]} />
      {[0, 2, 4, 6].map((allocated) => (
        <LendingBar key={allocated} {...bar} allocated={allocated} fairShare={6} />
      ))}
      <LendingLegend />
    </>
  ),
  Grid: <Rows rows={ROWS} />,
  "Grid without rows": <Rows rows={[]} />,
  "Grid before its rows": <Rows rows={undefined} />,
  Loading: <States.Skeleton rows={3} />,
  Failure: <States.Failure error={refused} onRetry={nothing} />,
  "Former content": (
    <States.Former error={refused} at={Date.parse(AT)} onRetry={nothing}>
      The content of before
    </States.Former>
  ),
  "Nothing matches": <States.NothingMatches clear="Clear the search" onClear={nothing} />,
  Gone: <States.Gone what="workload with this id" />,
  "No page": <States.NoPage />,
  Prose: (
    <Prose addressOf={() => "/kit"}>
      {"## Who\n\nA **text** with `code`:\n- one;\n- [two](/)."}
    </Prose>
  ),
  "No right": <States.NoRight what="workloads" who="--user ann" roles={["Viewer", "Editor"]} />,
  Command: <States.Command text="elastane explain a1 --project team-a" />,
  "A page that failed": (
    <Boundary place="kit">
      <Failing />
    </Boundary>
  ),
};

export default function KitPage(): React.ReactNode {
  const [isNarrow, setNarrow] = useState(false);
  const [isMirrored, setMirrored] = useState(false);
  // What floats is beside the page, not in it.
  useEffect(() => {
    document.documentElement.dir = isMirrored ? "rtl" : "ltr";
  }, [isMirrored]);
  const toggles = [
    ["320 px", isNarrow, setNarrow],
    ["Right to left", isMirrored, setMirrored],
  ] as const;
  return (
    <I18nProvider locale={isMirrored ? "he-IL" : "en-US"}>
      <main className={page.scroll} style={{ height: "100vh" }}>
        <div className={page.stack} style={{ maxWidth: isNarrow ? 320 : undefined }}>
          <h1>Kit of widgets</h1>
          <p>
            {toggles.map(([name, isOn, set]) => (
              <label key={name}>
                <input type="checkbox" checked={isOn} onChange={() => set(!isOn)} />{" "}
                <bdi>{name}</bdi>{" "}
              </label>
            ))}
          </p>
          {Object.entries(SECTIONS).map(([name, content]) => (
            <section key={name} className={page.card}>
              <h2>{name}</h2>
              {content}
            </section>
          ))}
          <ExactTime />
        </div>
      </main>
    </I18nProvider>
  );
}
