import { escape } from './words.js';

/** Parts of a report's page, made in Node or in a browser: the panel of an arena saves one, too. */

/** In a script element nothing may look like its end. */
const json = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

/** @param {string} name @returns {string} where fill() puts a part of the content */
export const mark = (name) => `<!--${name}-->`;

/**
 * @param {string} template of lib/report/page.js
 * @param {object} content
 * @param {string} content.title
 * @param {string} content.body HTML
 * @param {Record<string, object>} content.charts by the id of their box: see report-charts.js
 * @param {object} content.data what `sprites-swarm compare` reads out of the file again
 * @returns {string} a whole HTML page
 */
export function fill(template, { title, body, charts, data }) {
  const parts = { title: escape(title), body, charts: json(charts), data: json(data) };
  // In one go: what looks like a mark in a part stays as it is.
  return template.replace(/<!--(title|body|charts|data)-->/g, (all, name) => parts[name]);
}

/** @param {string} id of a chart @param {string} label what it shows @returns {string} HTML */
export function box(id, label) {
  return `<div class="chart" id="${id}" role="img" aria-label="${escape(label)}"></div>`;
}

/**
 * @param {string} value
 * @param {string} name
 * @param {string | false} [className] `bad` for what should not be
 * @returns {string} HTML
 */
export function tile(value, name, className = '') {
  return `<div class="tile ${className || ''}"><b>${escape(value)}</b><span>${escape(name)}</span></div>`;
}

/** @param {string[]} lines escaped @param {string} [className] @returns {string} HTML */
export function list(lines, className = '') {
  return `<ul class="${className}">${lines.map((line) => `<li>${line}</li>`).join('\n')}</ul>`;
}
