import { useEffect } from "preact/hooks";
import { seconds } from "./format.ts";
import { now } from "./model/clock.ts";
import { link, retryNow, stayConnected, version } from "./model/connection.ts";
import { totals } from "./model/fleet.ts";
import { HostPage } from "./pages/host/host-page.tsx";
import { HostsPage } from "./pages/hosts.tsx";
import { InstancesPage } from "./pages/instances.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { addressOf, type Page, page } from "./router.ts";
import { Loading } from "./ui/loading.tsx";
import { Notice } from "./ui/notice.tsx";
import { choice, choose, type SchemeChoice } from "./ui/scheme.ts";

export function App() {
  useEffect(() => void stayConnected(), []);
  const { phase } = link.value;
  return (
    <>
      <a class="skip" href="#main" onClick={toMain}>
        Skip to the content
      </a>
      <Header />
      <LostBanner />
      <main id="main" tabIndex={-1} data-stale={phase === "lost"}>
        <Content />
      </main>
      <Notice />
    </>
  );
}

/** The router owns the address, so the link moves the focus itself. */
function toMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Content() {
  const { value } = link;
  if (value.phase === "denied") return <SignIn wasTokenTried={value.wasTokenTried} />;
  if (totals.value === undefined) {
    const text = value.phase === "lost" ? "Nothing to show until the service answers." : "Connecting to the service…";
    return <Loading text={text} />;
  }
  return pageFor(page.value);
}

function pageFor(shown: Page) {
  switch (shown.name) {
    case "overview":
      return <OverviewPage />;
    case "hosts":
      return <HostsPage />;
    case "host":
      return <HostPage key={shown.key} hostKey={shown.key} />;
    case "instances":
      return <InstancesPage />;
  }
}

const LINKS: readonly { readonly title: string; readonly target: Page }[] = [
  { title: "Overview", target: { name: "overview" } },
  { title: "Hosts", target: { name: "hosts" } },
  { title: "Instances", target: { name: "instances" } },
];

function Header() {
  const shown = page.value.name === "host" ? "hosts" : page.value.name;
  return (
    <header class="header">
      <a class="brand" href="#/">
        Slotkeeper <span class="quiet">{version.value}</span>
      </a>
      <nav aria-label="Pages">
        {LINKS.map(({ title, target }) => (
          <a key={title} href={addressOf(target)} aria-current={shown === target.name ? "page" : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <LinkState />
      <label class="scheme">
        <span>Theme</span>
        <select value={choice.value} onChange={({ currentTarget }) => choose(currentTarget.value as SchemeChoice)}>
          <option value="system">Auto</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
    </header>
  );
}

const LINK_WORDS = { live: "Live", connecting: "Connecting…", denied: "Token needed", lost: "Disconnected" } as const;

function LinkState() {
  const { phase } = link.value;
  return (
    <span class="link-state" data-phase={phase} role="status">
      <i aria-hidden="true" /> {LINK_WORDS[phase]}
    </span>
  );
}

/** Shown while the data is old: since when, why, and when the next try is. */
function LostBanner() {
  const { value } = link;
  if (value.phase !== "lost") return null;
  const [age, left] = [now.value - value.since, value.retryAt - now.value];
  return (
    <div class="banner bad lost">
      <p>
        <span role="alert">
          <b>No connection to the service.</b> {value.reason}
        </span>{" "}
        <span aria-hidden="true">
          {totals.value === undefined ? "" : `The numbers below are ${seconds(Math.max(1_000, age))} old. `}
          {left > 500 ? `Next try in ${seconds(left)}.` : "Trying now…"}
        </span>
      </p>
      <button type="button" onClick={retryNow}>
        Try now
      </button>
    </div>
  );
}
