// Formats numbers.

const COUNTS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const UNITS = ["B", "KB", "MB", "GB", "TB"];
const SPANS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function count(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 1e6 ? SHORT.format(value) : COUNTS.format(value);
}

export function attempts(value) {
  return value === 1 ? "1 attempt" : `${count(value ?? 0)} attempts`;
}

export function rate(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 && value < 10 ? value.toFixed(1) : count(value);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.max(0, seconds).toFixed(seconds > 0 ? 1 : 0)} s`;
  const at = SPANS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = SPANS[at];
  const whole = Math.floor(seconds / size);
  const below = SPANS[at + 1];
  if (!below || whole >= 10) return `${whole} ${unit}`;
  const rest = Math.floor((seconds - whole * size) / below[1]);
  return rest ? `${whole} ${unit} ${rest} ${below[0]}` : `${whole} ${unit}`;
}
