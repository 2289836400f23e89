/**
 * To be imported before uPlot, which hands the page's language to Intl as it is loaded. Where Intl refuses that, as it does "C"
 * (WebKitGTK by the locale C.UTF-8) and "en-US@posix", there would be no plots: the page is in English then.
 */
if (!/^[a-z]{2,8}(-[a-z\d]{1,8})*$/i.test(navigator.language)) {
  Object.defineProperty(navigator, 'language', { value: 'en' });
}
