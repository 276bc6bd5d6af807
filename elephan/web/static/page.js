// Every page: theme, news by server-sent events, ages, the slider of a ledger, and a login that is there already.
"use strict";
(() => {
  const root = document.documentElement, body = document.body;
  const byId = id => document.getElementById(id);

  // The server writes the chosen theme into the page, so that none flashes; the cookie holds nothing else.
  const button = byId("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const named = () => { button.textContent = isDark() ? "light" : "dark"; button.ariaLabel = button.textContent + " theme"; };
  const changed = () => { named(); document.dispatchEvent(new Event("elephan:theme")); };
  button.hidden = false;
  named();
  button.onclick = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    document.cookie = "theme=" + root.dataset.theme + "; Path=/; Max-Age=31536000; SameSite=Strict" +
      (location.protocol === "https:" ? "; Secure" : "");
    changed();
  };
  system.addEventListener("change", changed);

  const hasSession = async () => (await (await fetch("/session")).json()).session;
  // A link from another site comes without the session's cookie (SameSite=Strict); a request from here has it.
  if (body.dataset.next && !byId("problem"))
    hasSession().then(is => { if (is) location.replace(body.dataset.next); });

  const ago = seconds => {
    for (const [length, unit] of [[86400, "d"], [3600, "h"], [60, "min"]])
      if (seconds >= 2 * length) return Math.round(seconds / length) + " " + unit + " ago";
    return Math.max(0, Math.round(seconds)) + " s ago";
  };
  const ages = () => document.querySelectorAll("[data-ago]").forEach(place => {
    if (place.dataset.ago) place.textContent = ago(Date.now() / 1000 - place.dataset.ago);
  });

  // Below a width, style.css shows each value of a table with its title.
  const titled = () => document.querySelectorAll(".scroll table").forEach(table => {
    const heads = [...table.querySelectorAll("thead th")].map(head => head.textContent.trim());
    table.querySelectorAll("tbody tr").forEach(row => [...row.children].forEach((cell, i) => {
      if (cell.tagName === "TD" && heads[i]) cell.dataset.title = heads[i];
    }));
  });
  titled();

  // Replaces the parts of the page that may have changed by what the server says now.
  let refreshing = null;
  const refresh = async () => {
    refreshing?.abort();
    const mine = refreshing = new AbortController();
    try {
      const answer = await fetch(location.href, {signal: mine.signal, headers: {accept: "text/html"}});
      if (!answer.ok || answer.redirected) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelectorAll("[data-refresh]").forEach(part => {
        const other = fresh.querySelector(`[data-refresh="${part.dataset.refresh}"]`);
        // A part that somebody is in keeps the focus: links are found again by their address.
        const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        const open = [...part.querySelectorAll("details[open]")].map(one => one.closest("[id]")?.id);
        if (!other || part.innerHTML === other.innerHTML) return;
        part.replaceChildren(...other.childNodes);
        open.forEach(id => byId(id)?.querySelector("details")?.setAttribute("open", ""));
        if (focused) [...part.querySelectorAll("a")].find(a => a.getAttribute("href") === focused)?.focus();
      });
      ages();
      titled();
    } catch (error) { if (error.name !== "AbortError") throw error; }
  };
  window.elephan = {refresh, isDark};

  const toast = alert => {
    const box = document.createElement("div"), text = document.createElement("a"), shut = document.createElement("button");
    box.className = "toast";
    text.href = alert.url;
    text.textContent = "New alert: " + alert.text;
    shut.textContent = "dismiss";
    shut.className = "quiet";
    shut.onclick = () => box.remove();
    box.append(text, shut);
    byId("toasts").append(box);
    while (byId("toasts").childElementCount > 3) byId("toasts").firstElementChild.remove();
  };

  if ("live" in body.dataset) {
    const link = byId("link"), title = document.title;
    const say = (state, text) => {
      if (link.textContent !== text) { link.textContent = text; link.className = "link " + state; }
    };
    let states = null, known = null, source = null;
    const here = byId("charts")?.dataset.path;
    const take = news => {
      say("on", "live");
      for (const place of document.querySelectorAll("[data-live]")) {
        const [path, quantity] = place.dataset.live.split(":");
        const text = news.paths[path]?.latest[quantity];
        if (text !== undefined && place.textContent !== text) place.textContent = text;
      }
      for (const place of document.querySelectorAll("[data-of]"))
        if (news.paths[place.dataset.of]?.last) place.dataset.ago = news.paths[place.dataset.of].last;
      ages();
      const now = JSON.stringify([news.notes, "jobs" in body.dataset && news.backups, Object.entries(news.paths).map(([id, path]) => [id, path.state, path.open])]);
      const ids = news.alerts.map(alert => alert.id);
      const missing = news.alerts.some(a => (!here || a.path === here) && !document.querySelector(`[data-alert="${a.id}"]`));
      const stale = [...document.querySelectorAll(".alert.open[data-alert]")].some(one => !ids.includes(+one.dataset.alert));
      // The first message is compared with the page, since something may have happened between the two.
      if (states === null ? missing || stale : now !== states || String(ids) !== String([...known])) refresh();
      if (known !== null) news.alerts.filter(alert => !known.has(alert.id)).forEach(toast);
      states = now;
      known = new Set(ids);
      document.title = ids.length ? `(${ids.length}) ${title}` : title;
      document.dispatchEvent(new CustomEvent("elephan:news", {detail: news}));
    };
    const listen = () => {
      source = new EventSource("/events");
      source.addEventListener("state", event => take(JSON.parse(event.data)));
      source.onerror = async () => {
        say("off", "not connected");
        if (source.readyState !== EventSource.CLOSED) return;
        // An answer that is no stream ends it for good: the session is over, or too many pages are open.
        if (await hasSession().catch(() => true)) setTimeout(listen, 5000);
        else location.reload();
      };
    };
    listen();
    setInterval(ages, 5000);
    // A page that waits in the back-forward cache would hold one of the server's places.
    addEventListener("pagehide", () => source.close());
    addEventListener("pageshow", event => { if (event.persisted) listen(); });
  }

  document.querySelectorAll(".managed").forEach(section => {
    const data = JSON.parse(section.querySelector(".steps").textContent), slider = section.querySelector("input");
    const cursor = section.querySelector("[id^=cursor]"), text = section.querySelector("output");
    slider.max = data.steps.length - 1;
    slider.oninput = () => {
      const step = data.steps[slider.value];
      const flows = Object.entries(step.on).map(([flow, way]) => flow + " on " + way);
      text.textContent = [step.t + " s", "IP " + step.ip, ...step.paths, ...flows, ...step.events].join(" · ");
      cursor.setAttribute("transform", "translate(" + (data.left + data.width * step.t / data.end) + " 0)");
    };
    slider.oninput();
  });
})();
