// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// How numbers, sizes and times are shown.

const plain = {format: n => formats[Math.abs(n) < 1 ? 0 : Math.abs(n) < 100 ? 1 : 2].format(n)};
const formats = [2, 1, 0].map(digits => new Intl.NumberFormat('en', {maximumFractionDigits: digits}));

export const number = n => n === undefined || n === null || Number.isNaN(n) ? '–' : n >= 1e6 ? plain.format(n / 1e6) + ' M' : plain.format(n);

export function bytes(n) {
  if (!n) {
    return n === 0 ? '0 B' : '–';
  }
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const i = Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  return `${plain.format(n / 2 ** (10 * i))} ${units[i]}`;
}

/** Microseconds; negative for not known. */
export function micros(n) {
  if (n === undefined || n === null || n < 0 || Number.isNaN(n)) {
    return '–';
  }
  return n < 1000 ? `${Math.round(n)} µs` : n < 1e6 ? `${plain.format(n / 1000)} ms` : `${plain.format(n / 1e6)} s`;
}

export const rate = n => n === undefined || n === null ? '–' : `${number(n)}/s`;

export function ago(ms, now = Date.now()) {
  if (!ms) {
    return 'never';
  }
  const s = Math.max(0, Math.round((now - ms) / 1000));
  return s < 2 ? 'now' : s < 60 ? `${s} s ago` : s < 3600 ? `${Math.floor(s / 60)} min ago` : s < 86400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86400)} d ago`;
}

export function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min` : `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

export const clock = ms => new Date(ms).toLocaleTimeString('en-GB');

/** A rounded number with enough digits to see what differs. */
export const value = v => typeof v !== 'number' ? String(v) : Number.isInteger(v) ? String(v) : Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4 && v !== 0 ? v.toExponential(4) : String(Number(v.toPrecision(6)));
