import { make, put } from '../../arena-pages/elements.js';
import { contentOf, fill } from '../../arena-pages/report.js';
import { resultOf } from './report.js';

/**
 * Saves a run as the swarm's self-contained report: lib/report/report-body.js makes it here, in the browser, of a
 * page that the server has ready (lib/report/page.js): nothing of the run leaves this machine.
 */

async function reportOf(run) {
  const response = await fetch(new URL('../../swarm/report.txt', import.meta.url));
  if (!response.ok) throw new Error(`the report's page: ${response.status}`);
  return fill(await response.text(), contentOf(resultOf(run)));
}

/**
 * A button that saves the run.
 *
 * @param {HTMLElement} root
 * @param {() => ?object} run of resultOf; null while there is nothing to save
 */
export function saveButton(root, run) {
  const how = { className: 'act', text: 'Save the report', attributes: { id: 'load-save' } };
  const button = make('button', { ...how, into: root });
  const news = make('p', { className: 'soft', attributes: { role: 'status' }, into: root });
  button.addEventListener('click', async () => {
    const now = run();
    if (now === null) return put(news, 'There is nothing to save yet.');
    try {
      const href = URL.createObjectURL(new Blob([await reportOf(now)], { type: 'text/html' }));
      const name = `load-${new Date(now.ended).toISOString().slice(0, 19).replaceAll(':', '-')}.html`;
      make('a', { attributes: { href, download: name } }).click();
      setTimeout(() => URL.revokeObjectURL(href), 60_000);
      return put(news, `Saved as ${name}: one file that needs nothing else.`);
    } catch (error) {
      return put(news, `It could not be saved: ${error.message}`);
    }
  });
}
