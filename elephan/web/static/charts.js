// The charts of one path: the window of time is in the address, so that any view can be sent to somebody.
"use strict";
(() => {
  const root = document.getElementById("charts");
  const spans = JSON.parse(root.dataset.spans);
  const LEAST_S = 10, MINUTE = 60, HOUR = 3600, DAY = 86400;
  const view = {span: root.dataset.span, start: +root.dataset.start, end: +root.dataset.end};
  const figures = [...root.querySelectorAll("[data-chart]")].map(element => ({
    element, key: element.dataset.chart, unit: element.dataset.unit, plot: element.querySelector(".plot"),
    readout: element.querySelector(".readout"), numbers: element.querySelector(".numbers"), chart: null, data: null,
  }));
  const problem = root.querySelector(".problem"), shown = root.querySelector(".shown");
  let asked = null, loaded_ms = 0, alerts = [];

  const pad = number => String(number).padStart(2, "0");
  const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const iso = at => new Date(at * 1000).toISOString().slice(0, 19) + "Z";
  const moment = (at, seconds) => new Date(at * 1000).toISOString().replace("T", " ").slice(0, seconds ? 19 : 16);

  // Three significant digits, as elephan/units.py writes them.
  const digits = value => {
    if (value === 0) return "0";
    const places = 2 - Math.floor(Math.log10(Math.abs(value)));
    return places > 0 ? value.toFixed(Math.min(places, 12)) : String(Math.round(value));
  };
  const scaled = (value, unit, steps) => {
    const [factor, prefix] = steps.find(([size]) => Math.abs(value) >= size * 0.9995) || steps[steps.length - 1];
    return digits(value / factor) + " " + prefix + unit;
  };
  const show = {
    s: v => v === 0 ? "0 s" : scaled(v, "s", [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]]),
    "bit/s": v => scaled(v, "bit/s", [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]),
    // As tables, alerts and scenarios write a loss: units.loss.
    ratio: v => v === 0 || v === 1 ? String(v) : v.toExponential(1).replace("e+", "e"),
    count: v => Number.isInteger(v) ? String(v) : digits(v),
  };
  // Ticks are round numbers: no zeros behind them.
  const ticks = {...show, ratio: v => v === 0 || v === 1 ? String(v) : v.toExponential(2)};
  const tick = unit => v => ticks[unit](v).replace(/(\.\d*?)0+(?= |e|$)/, "$1").replace(/\.(?= |e|$)/, "");

  const colour = name => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    root.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const pale = (text, part) => text.replace(/^rgba?\(([^),]+,[^),]+,[^),]+).*$/, `rgba($1, ${part})`);

  // A gap is where nothing came for longer than two and a half points.
  const withGaps = line => {
    const steps = line.times.slice(1).map((at, i) => at - line.times[i]).sort((a, b) => a - b);
    const usual = line.step_s || (steps[steps.length >> 1] || 0) * 4;
    const out = [[], [], [], []];
    line.times.forEach((at, i) => {
      if (i && usual && at - line.times[i - 1] > 2.5 * usual) {
        out[0].push((at + line.times[i - 1]) / 2);
        for (const column of out.slice(1)) column.push(null);
      }
      [at, line.low[i], line.mid[i], line.high[i]].forEach((value, column) => out[column].push(value));
    });
    return out;
  };

  const times = (chart, splits, _axis, _space, step) => splits.map((at, i) => {
    const day = new Date(at * 1000);
    const date = day.getUTCDate() + " " + MONTHS[day.getUTCMonth()];
    if (step >= 28 * DAY) return MONTHS[day.getUTCMonth()] + (i === 0 || day.getUTCMonth() === 0 ? "\n" + day.getUTCFullYear() : "");
    if (step >= DAY) return date;
    const clock = pad(day.getUTCHours()) + ":" + pad(day.getUTCMinutes()) + (step < MINUTE ? ":" + pad(day.getUTCSeconds()) : "");
    return clock + (i === 0 || at % DAY === 0 ? "\n" + date : "");
  });

  const draw = figure => {
    const {plot, data, unit} = figure;
    figure.chart?.destroy();
    figure.chart = null;
    plot.replaceChildren();
    plot.classList.toggle("nothing", !data?.lines.length);
    if (!data?.lines.length) {
      plot.textContent = "Nothing was measured in this window.";
      figure.readout.replaceChildren();
      return;
    }
    const ink = colour("muted"), grid = colour("grid"), band = colour("band"), bad = colour("bad");
    const series = [{}], bands = [];
    data.lines.forEach(line => {
      const stroke = colour("c" + line.index);
      const rare = line.times.length < 60;
      series.push({show: true, stroke: null, points: {show: false}}, {show: true, stroke: null, points: {show: false}},
        {stroke, width: 1.4, points: {show: rare, size: 4, fill: stroke}});
      bands.push({series: [series.length - 2, series.length - 3], fill: pale(stroke, 0.18)});
    });
    const joined = uPlot.join(data.lines.map(line => {
      const [at, low, mid, high] = withGaps(line);
      return [at, low, high, mid];
    }));
    const range = (u, min, max) => {
      const inside = (data.band?.times || []).map((at, i) => [at, data.band.low[i], data.band.high[i]])
        .filter(row => row[0] >= view.start && row[0] <= view.end && row[1] !== null);
      for (const [, low, high] of inside) { min = Math.min(min ?? low, low); max = Math.max(max ?? high, high); }
      if (min === null || max === null) return [0, 1];
      if ("zero" in figure.element.dataset) return [0, max > 0 ? max * 1.08 : unit === "ratio" ? 1e-3 : 1];
      if (unit === "count") return [Math.floor(min) - 1, Math.ceil(max) + 1];
      const room = Math.max((max - min) * 0.08, Math.abs(max) * 0.01);
      return [Math.max(0, min - room), max + room];
    };
    // Below the curves: what is usual, and while an alert of this quantity lasted.
    const below = u => {
      const context = u.ctx, x = at => u.valToPos(at, "x", true), y = value => u.valToPos(value, "y", true);
      context.save();
      context.beginPath();
      context.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      context.clip();
      if (data.band) {
        context.beginPath();
        data.band.times.forEach((at, i) => context[i ? "lineTo" : "moveTo"](x(at), y(data.band.high[i])));
        for (let i = data.band.times.length - 1; i >= 0; i--) context.lineTo(x(data.band.times[i]), y(data.band.low[i]));
        context.closePath();
        context.fillStyle = band;
        context.fill();
      }
      for (const alert of alerts.filter(one => data.quantities.includes(one.quantity))) {
        const left = x(alert.since), right = x(alert.ended ?? view.end);
        context.fillStyle = pale(bad, 0.09);
        context.fillRect(left, u.bbox.top, Math.max(right - left, 2), u.bbox.height);
        context.strokeStyle = bad;
        context.lineWidth = devicePixelRatio;
        context.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
        context.strokeRect(left, u.bbox.top - 2, 0, u.bbox.height + 4);
      }
      context.restore();
    };
    figure.chart = new uPlot({
      width: plot.clientWidth, height: 176, series, bands, legend: {show: false}, padding: [8, 22, 0, 0],
      tzDate: at => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: {x: {time: true, range: () => [view.start, view.end]}, y: {range}},
      axes: [
        {stroke: ink, grid: {stroke: grid, width: 1}, ticks: {stroke: grid, width: 1, size: 4}, values: times, font: "12px system-ui, sans-serif", space: 64, size: 40},
        {stroke: ink, grid: {stroke: grid, width: 1}, ticks: {show: false}, values: (u, all) => all.map(tick(unit)), font: "12px system-ui, sans-serif", size: 78, space: 30,
          incrs: unit === "count" ? [1, 2, 5, 10, 20, 50, 100] : undefined},
      ],
      cursor: {
        sync: {key: "path"}, y: false, drag: {x: true, y: false, setScale: false}, points: {size: 6},
        bind: {
          dblclick: () => () => { zoom(2.5); },
          mousedown: (u, target, handle) => event => { if (!event.shiftKey) handle(event); },
        },
      },
      hooks: {
        drawClear: [below],
        setCursor: [u => read(figure, u.cursor.idx)],
        setSelect: [u => {
          if (u.select.width < 5) return;
          const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
          go(from, to);
        }],
      },
    }, joined, plot);
    read(figure, null);
  };

  // The values at the cursor; the newest ones without it.
  const read = (figure, index) => {
    const parts = [], at = index === null || index === undefined ? null : figure.chart?.data[0][index];
    if (at !== null && at !== undefined) parts.push(document.createTextNode(moment(at, view.end - view.start < 2 * DAY)));
    figure.data.lines.forEach((line, number) => {
      const columns = at === null || !figure.chart ? null : figure.chart.data.slice(1 + 3 * number, 4 + 3 * number);
      const last = line.mid.findLastIndex(value => value !== null);
      const [low, high, mid] = columns ? columns.map(column => column[index]) : [line.low[last], line.high[last], line.mid[last]];
      const item = document.createElement("span"), mark = document.createElement("i"), value = document.createElement("b");
      mark.className = "k" + line.index;
      value.textContent = mid === null || mid === undefined ? "–" : show[figure.unit](mid);
      item.append(mark, line.label + " ", value);
      if (columns && low != null && high != null && low !== high) item.append(` (${show[figure.unit](low)} to ${show[figure.unit](high)})`);
      parts.push(item);
    });
    figure.readout.replaceChildren(...parts);
  };

  const ROWS = 48;
  const fill = figure => {
    if (!figure.numbers.open) return;
    const table = document.createElement("table"), lines = figure.data?.lines || [];
    const row = (cells, kind, titles) => {
      const line = document.createElement("tr");
      cells.forEach((text, i) => {
        const cell = document.createElement(kind === "th" || i === 0 ? "th" : "td");
        cell.textContent = text;
        if (kind === "th") cell.scope = "col"; else if (i === 0) cell.scope = "row";
        if (i === 0) cell.className = "head"; else if (titles) cell.dataset.title = titles[i];
        line.append(cell);
      });
      return line;
    };
    const head = document.createElement("thead"), inside = document.createElement("tbody");
    const titles = ["time", ...lines.flatMap(line => [line.label, "low", "high"])];
    head.append(row(titles, "th"));
    const rows = new Map();
    lines.forEach((line, number) => {
      const step = Math.max(1, Math.ceil(line.times.length / ROWS));
      for (let i = (line.times.length - 1) % step; i < line.times.length; i += step) {
        const cells = rows.get(line.times[i]) || Array(3 * lines.length).fill("");
        [line.mid[i], line.low[i], line.high[i]].forEach((value, column) => {
          cells[3 * number + column] = value === null ? "–" : show[figure.unit](value);
        });
        rows.set(line.times[i], cells);
      }
    });
    [...rows].sort((a, b) => b[0] - a[0]).forEach(([at, cells]) => inside.append(row([moment(at, true), ...cells], "td", titles)));
    table.append(head, inside);
    figure.numbers.querySelector("div").replaceChildren(table);
  };

  const query = () => view.span ? "span=" + view.span : "from=" + iso(view.start) + "&to=" + iso(view.end);
  const load = async () => {
    asked?.abort();
    const mine = asked = new AbortController();
    const waiting = setTimeout(() => root.querySelector(".charts").classList.add("waiting"), 200);
    try {
      const points = Math.min(2000, Math.max(100, Math.round(figures[0].plot.clientWidth * 1.2)));
      const answer = await fetch(root.dataset.url + "/data?" + query() + "&points=" + points, {signal: mine.signal});
      if (!answer.ok) throw new Error(await answer.text());
      const data = await answer.json();
      problem.hidden = true;
      if (view.span) { view.start = data.start; view.end = data.end; label(); }
      alerts = data.alerts;
      for (const figure of figures) {
        figure.data = data.charts[figure.key];
        draw(figure);
        fill(figure);
      }
      loaded_ms = Date.now();
      root.dataset.drawn = query();
    } catch (error) {
      if (error.name === "AbortError") return;
      problem.textContent = "The charts cannot be loaded: " + error.message;
      problem.hidden = false;
    } finally {
      clearTimeout(waiting);
      root.querySelector(".charts").classList.remove("waiting");
    }
  };
  const label = () => {
    const seconds = view.end - view.start < HOUR;
    shown.textContent = moment(view.start, seconds) + " to " + moment(view.end, seconds);
    root.querySelectorAll("[data-span]").forEach(link => {
      if (link.dataset.span === view.span) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    });
    for (const figure of figures)
      figure.element.querySelector(".csv").href = `${root.dataset.url}/${figure.key}.csv?${query()}`;
  };

  let soon = null;
  const show_window = keep => {
    label();
    // Curves move at once with what is there; the numbers of the new window follow.
    for (const figure of figures) figure.chart?.setScale("x", {min: view.start, max: view.end});
    if (!keep) history.replaceState(null, "", "?" + query());
    clearTimeout(soon);
    soon = setTimeout(() => { load(); elephan.refresh(); }, 150);
  };
  const go = (start, end) => {
    const middle = (start + end) / 2, half = Math.min(Math.max(end - start, LEAST_S), 11 * 366 * DAY) / 2;
    view.span = "";
    view.start = Math.max(0, Math.floor(middle - half));
    view.end = Math.max(view.start + LEAST_S, Math.ceil(middle + half));
    show_window();
  };
  const move = part => { const by = part * (view.end - view.start); go(view.start + by, view.end + by); };
  const zoom = (factor, at = (view.start + view.end) / 2) =>
    go(at - (at - view.start) * factor, at + (view.end - at) * factor);
  const follow = name => {
    view.span = name;
    view.end = Date.now() / 1000;
    view.start = view.end - spans[name];
    show_window();
  };
  const MOVES = {earlier: () => move(-0.4), later: () => move(0.4), in: () => zoom(0.5), out: () => zoom(2)};

  root.querySelectorAll("[data-move]").forEach(button => button.onclick = () => MOVES[button.dataset.move]());
  root.querySelectorAll("a[data-span]").forEach(link => link.onclick = event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    follow(link.dataset.span);
  });

  for (const figure of figures) {
    const {plot} = figure;
    figure.numbers.ontoggle = () => fill(figure);
    plot.addEventListener("keydown", event => {
      const key = event.key, step = key === "ArrowLeft" ? -1 : key === "ArrowRight" ? 1 : 0;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (step && event.shiftKey && figure.chart) {
        const all = figure.chart.data[0], now = figure.chart.cursor.idx ?? all.length - 1;
        const index = Math.min(Math.max(now + step, 0), all.length - 1);
        figure.readout.setAttribute("aria-live", "polite");
        figure.chart.setCursor({left: figure.chart.valToPos(all[index], "x"), top: 10});
      } else if (step) move(0.2 * step);
      else if (key === "+" || key === "=") zoom(0.5);
      else if (key === "-") zoom(2);
      else if (key === "Home") follow("24h");
      else return;
      event.preventDefault();
    });
    plot.addEventListener("wheel", event => {
      if (!event.ctrlKey || !figure.chart) return;
      event.preventDefault();
      const box = figure.chart.over.getBoundingClientRect();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, figure.chart.posToVal(event.clientX - box.left, "x"));
    }, {passive: false});
    // Shift and drag, or one finger along the chart: pan.
    plot.addEventListener("pointerdown", event => {
      if (!figure.chart || !(event.shiftKey || event.pointerType === "touch")) return;
      const from = event.clientX, {start, end} = view;
      const per_px = (end - start) / figure.chart.over.clientWidth;
      let moved = false;
      const onmove = at => {
        const by = (from - at.clientX) * per_px;
        moved = moved || Math.abs(at.clientX - from) > 8;
        if (moved) go(start + by, end + by);
      };
      const done = () => { removeEventListener("pointermove", onmove); removeEventListener("pointerup", done); removeEventListener("pointercancel", done); };
      addEventListener("pointermove", onmove);
      addEventListener("pointerup", done);
      addEventListener("pointercancel", done);
    });
  }

  document.addEventListener("elephan:theme", () => figures.forEach(draw));
  document.addEventListener("elephan:news", event => {
    const wait_ms = Math.min(60e3, Math.max(2e3, (view.end - view.start) / 600 * 1000));
    if (view.span && event.detail.paths[root.dataset.path] && Date.now() - loaded_ms >= wait_ms) load();
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (width === innerWidth) return;
    width = innerWidth;
    figures.forEach(figure => figure.chart?.setSize({width: figure.plot.clientWidth, height: 176}));
  });
  load();
})();
