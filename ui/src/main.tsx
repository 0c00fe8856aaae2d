// Where the page begins.
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { SessionProvider } from "./api/session";
import { App } from "./app/App";
import { applyTheme } from "./app/theme";
import "./app/tokens.css";

applyTheme();

const root = document.querySelector("#root");
if (!root) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <SessionProvider>
      <App />
    </SessionProvider>
  </StrictMode>,
);
