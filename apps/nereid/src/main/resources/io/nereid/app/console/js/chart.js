// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
// <line-chart>: a chart over time, drawn by uPlot. Properties: `label`, `series` ([{label, colour: 1…5, format}]) and `data` (a list of times in
// milliseconds, then a list of values for each series).

import uPlot from '../lib/uplot/uPlot.esm.js';

class LineChart extends HTMLElement {
  #plot = null;
  #series = [];
  #data = [[]];
  #observer = new ResizeObserver(() => this.#plot?.setSize(this.#size()));

  set series(series) {
    if (JSON.stringify(series.map(s => s.label)) !== JSON.stringify(this.#series.map(s => s.label))) {
      this.#series = series;
      this.#remove();
    }
  }

  set data(data) {
    this.#data = [data[0].map(t => t / 1000), ...data.slice(1)];
    if (!this.isConnected) {
      return;
    }
    if (this.#plot) {
      this.#plot.setData(this.#data);
    } else {
      this.#create();
    }
  }

  connectedCallback() {
    this.setAttribute('role', 'img');
    this.setAttribute('aria-label', this.label ?? 'chart');
    this.#observer.observe(this);
    this.#create();
  }

  disconnectedCallback() {
    this.#observer.disconnect();
    this.#remove();
  }

  #size() {
    return {width: Math.max(200, this.clientWidth), height: 190};
  }

  #remove() {
    this.#plot?.destroy();
    this.#plot = null;
  }

  #create() {
    if (this.#plot || this.#series.length === 0) {
      return;
    }
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name).trim();
    const axis = {stroke: colour('--soft'), grid: {stroke: colour('--line'), width: 1}, ticks: {stroke: colour('--line'), width: 1}};
    const format = this.#series[0].format ?? String;
    this.#plot = new uPlot({
      ...this.#size(),
      series: [{value: (u, v) => v === null ? '–' : new Date(v * 1000).toLocaleTimeString('en-GB')}, ...this.#series.map(s => ({
        label: s.label, stroke: colour(`--series-${s.colour}`), width: 2, points: {show: false}, spanGaps: true,
        value: (u, v) => v === null || v === undefined ? '–' : (s.format ?? String)(v)
      }))],
      axes: [{...axis, space: 90, values: (u, times) => times.map(t => new Date(t * 1000).toLocaleTimeString('en-GB'))}, {...axis, size: 72, values: (u, values) => values.map(v => format(v))}],
      cursor: {points: {size: 6}},
      scales: {y: {range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1]}}
    }, this.#data, this);
  }
}

customElements.define('line-chart', LineChart);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => location.reload());
