import { page } from '../report/page.js';
import { contentOf } from '../report/report-body.js';

export { titleOf } from '../report/report-body.js';

/**
 * @param {import('./result.js').Result} result
 * @returns {string} a whole HTML page
 */
export const reportOf = (result) => page(contentOf(result));
