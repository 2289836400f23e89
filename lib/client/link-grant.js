/** The grant in a page's link. */

const KEY = 'sprites.grant';

/** Longest grant that a server reads. Of a longer one it gets as much, and answers `bad-grant`; a longer head is 431. */
const MAX_LENGTH = 4096;

/**
 * Returns a grant without characters that a mail may have put around the link: no header can have these, so all
 * requests would fail.
 */
const sendable = (grant) => grant?.replace(/[^\w.-]/g, '').slice(0, MAX_LENGTH);

/** Returns the grant that the tab has stored. */
function storedGrant() {
  try {
    return sendable(sessionStorage.getItem(KEY));
  } catch {
    return undefined; // Storage is switched off.
  }
}

function storeGrant(grant) {
  try {
    sessionStorage.setItem(KEY, grant);
  } catch {
    // Storage is switched off: a reload has no grant.
  }
}

/** Returns the grant in the address. */
const grantInAddress = () => sendable(new URLSearchParams(location.hash.slice(1)).get('grant'));

/**
 * Moves the grant from the page's link, `…#grant=TOKEN`, into the tab's storage. A browser sends a fragment to no
 * server and in no Referer. Afterwards the address does not show the grant, and a reload finds it in the storage.
 *
 * @returns {{grant?: () => string}} an option of `Client`, `Feeds` and `Player`; empty without a grant
 */
export function grantOfLink() {
  const grant = grantInAddress() || storedGrant();
  if (grantInAddress()) {
    storeGrant(grant);
    history.replaceState(history.state, '', location.pathname + location.search);
  }
  // Another link, opened in this tab, changes only the fragment.
  addEventListener('hashchange', () => grantInAddress() && location.reload());
  return grant ? { grant: () => grant } : {};
}
