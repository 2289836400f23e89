/** The grant in a page's own link. */

const KEY = 'sprites.grant';

/** What the tab keeps. */
function kept() {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined; // Storage is switched off.
  }
}

function keep(grant) {
  try {
    sessionStorage.setItem(KEY, grant);
  } catch {
    // Storage is switched off: a reload has no grant.
  }
}

/** Without what a mail has put around the link: no header can have it, and the client would find no server. */
const given = () =>
  new URLSearchParams(location.hash.slice(1)).get('grant')?.replace(/[^\w.-]/g, '');

/**
 * Takes the grant from the page's link, `…#grant=TOKEN`: a browser sends a fragment to no server and in no Referer. The address no
 * longer shows it afterwards, and the tab keeps it, so that a reload has it.
 *
 * @returns {{grant?: () => string}} an option of `Client`, `Feeds` and `Player`; empty where no link gave one
 */
export function grantOfLink() {
  const grant = given() || kept();
  if (given()) {
    keep(grant);
    history.replaceState(history.state, '', location.pathname + location.search);
  }
  // Another link, opened where this page is, changes the fragment alone.
  addEventListener('hashchange', () => given() && location.reload());
  return grant ? { grant: () => grant } : {};
}
