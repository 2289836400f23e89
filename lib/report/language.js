/**
 * Sets the language to English where Intl refuses the browser's language, such as "C" (WebKitGTK with the locale
 * C.UTF-8) or "en-US@posix". It is imported before uPlot, which passes the language to Intl as it loads: without this
 * there would be no plots.
 */
if (!/^[a-z]{2,8}(-[a-z\d]{1,8})*$/i.test(navigator.language)) {
  Object.defineProperty(navigator, 'language', { value: 'en' });
}
