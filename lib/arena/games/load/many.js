/** @param {number} count @param {string} word @returns {string} 1 machine, 2 machines */
export const many = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;
