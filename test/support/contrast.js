/**
 * Contrast as WCAG 2 defines it.
 *
 * @param {string} one a color, written as `rgb(…)` or #rrggbb
 * @param {string} other
 * @returns {number} 1 to 21
 */
export function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color) {
  const parts = color.startsWith('#')
    ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16))
    : color.match(/\d+/g).slice(0, 3).map(Number);
  const [r, g, b] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
